#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "launcher/commands/command.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/training_plan.h"
#include "launcher/output_file.h"
#include "launcher/session.h"

namespace lockstep {

namespace {

struct ExtractRequest {
  std::string target;
  std::string weight;
  std::string output;
  bool optimizer = false;
};

/// Weights whose extract path is `what` or lies below it; all when empty.
std::vector<size_t> chosen(const Blueprint& blueprint, const std::string& what) {
  std::vector<size_t> result;
  std::vector<std::string> known;
  for (size_t v = 0; v < blueprint.names.size(); ++v) {
    const std::string& path = blueprint.names[v].extract_path;
    known.push_back(path);
    known.push_back(path.substr(0, path.rfind('/')));
    if (what.empty() || path == what || path.rfind(what + "/", 0) == 0) result.push_back(v);
  }
  if (result.empty()) throw Error("M14", blueprint.target, fmt::format("no layer or weight '{}'{}; 'lockstep inspect' lists them", printable(what), did_you_mean(what, known)));
  return result;
}

/// /optimizer/iterations and /optimizer/slots/<slot>/<layer>/<variable>.
std::vector<NamedTensor> optimizer_tensors(const Blueprint& blueprint, const Restored& restored, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors;
  if (!restored.optimizer) throw Error("H33", blueprint.source, "the file has no optimizer state");
  const int64_t iterations = restored.optimizer->iterations;
  tensors.push_back({"iterations", Tensor::of<int64_t>(DType::i64, {}, {&iterations, 1})});
  const std::vector<std::string> names = optimizer.slots();
  for (size_t s = 0; s < names.size(); ++s) {
    for (size_t v = 0; v < blueprint.names.size(); ++v) {
      const Tensor& slot = restored.optimizer->slots[s][v];
      if (slot.valid()) tensors.push_back({fmt::format("slots/{}/{}", names[s], blueprint.names[v].extract_path), slot});
    }
  }
  return tensors;
}

/// The optimizer that the file's state belongs to: its compiled config, else by its class name.
std::shared_ptr<const Optimizer> stored_optimizer(const Blueprint& blueprint) {
  const std::string_view keras_2_semantics = blueprint.stored->optimizer->legacy ? "keras-2-legacy" : "keras-2";
  if (std::shared_ptr<const Optimizer> compiled = compiled_optimizer(blueprint, keras_2_semantics)) return compiled;
  if (blueprint.job && !blueprint.job->job.train.optimizer.is_null()) return make_optimizer(blueprint.job->job.train.optimizer);
  Value config(Value::Map{{"type", blueprint.stored->optimizer->class_name}});
  const auto& slots = blueprint.stored->optimizer->slots;
  const bool hats = std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot.name == "velocity_hats"; });
  const bool momentums = std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot.name == "momentums"; });
  if (hats) config.set("amsgrad", true);
  if (config.at("type").as_string() == "SGD" && momentums) config.set("momentum", 0.9);  // only its slots are asked for
  if (blueprint.semantics == 2) config.set("semantics", keras_2_semantics);
  return make_optimizer(config);
}

void extract(Communicator& communicator, const Log& log, const ExtractRequest& request) {
  Blueprint blueprint = make_blueprint(communicator, {request.target, {}, ""});
  for (const std::string& note : blueprint.search_notes) log.warn(note);
  MirroredState state = fresh_state(blueprint, {}, {});
  std::shared_ptr<const Optimizer> optimizer;
  RestoreRules rules = restore_rules(blueprint, false);
  on_root(communicator, "reading the optimizer", [&]() -> std::string {
    if (!request.optimizer) return {};
    if (!blueprint.stored || !blueprint.stored->optimizer || !blueprint.stored->optimizer->iterations) throw Error("H33", request.target, "there is no optimizer state in it");
    optimizer = stored_optimizer(blueprint);
    rules.optimizer = OptimizerRestore::keep;
    return {};
  });
  const Restored restored = restore_state(communicator, blueprint, state, rules, optimizer.get());
  for (const std::string& warning : restored.warnings) log.warn(warning);
  on_root(communicator, "writing the weights", [&]() -> std::string {
    std::vector<NamedTensor> tensors;
    if (request.optimizer) {
      tensors = optimizer_tensors(blueprint, restored, *optimizer);
      write_tensors(request.output, "/optimizer", tensors);
      return {};
    }
    for (const size_t v : chosen(blueprint, request.weight)) tensors.push_back({blueprint.names[v].extract_path, state.tensor(v)});
    write_tensors(request.output, "/weights", tensors);
    return {};
  });
  log.info(fmt::format("written: {}", request.output));
}

}  // namespace

/// lockstep extract TARGET [LAYER[/WEIGHT]] -o FILE [--optimizer]
Command extract_command() {
  return {"extract", "Writes weights, or the optimizer's state, to .h5, .npz or .npy", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto request = std::make_shared<ExtractRequest>();
            app.add_option("target", request->target, "A model file, a run or checkpoint folder, or a job")->required();
            app.add_option("weight", request->weight, "LAYER or LAYER/WEIGHT; all when left out");
            app.add_option("-o,--output", request->output, "The file to write")->required();
            app.add_flag("--optimizer", request->optimizer, "The optimizer's iterations and slots instead");
            return [request, &global] {
              run_ranks({global.threads, false, global.quiet}, [&](Communicator& communicator, const Log& log) { extract(communicator, log, *request); });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
