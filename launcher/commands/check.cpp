#include <memory>

#include <fmt/format.h>

#include "core/program/plan.h"
#include "launcher/commands/command.h"
#include "launcher/environment.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/training_plan.h"
#include "launcher/session.h"
#include "layers/summary/summary.h"

namespace lockstep {

namespace {

std::string bytes_text(double bytes) {
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return fmt::format("{:.4g} {}", bytes, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.4g} TiB", bytes);
}

void check(Communicator& communicator, const Log& log, const std::string& job_file, const std::vector<std::string>& overrides) {
  Blueprint blueprint = make_blueprint(communicator, {job_file, overrides, "check"});
  const Job& job = blueprint.job->job;
  check_device(job.device);
  refuse_unavailable(*blueprint.job);
  const DataExpectation expectation = expectation_of(blueprint);
  const OpenedData data = open_data(job.data.train.description, "data.train", expectation, static_cast<uint64_t>(job.seed));
  if (job.data.validation.given()) open_data(job.data.validation.description, "data.validation", expectation, static_cast<uint64_t>(job.seed));
  const std::shared_ptr<const Optimizer> optimizer = job_optimizer(blueprint);
  const TrainingSpec spec = training_spec(blueprint, *data.rows);
  const int64_t replicas = job.train.replicas.value_or(job.launch.ranks.value_or(1));
  const int64_t batch = std::min<int64_t>(*job.train.global_batch, data.rows->rows());
  const StepShape shape{rows_of_replica(batch, 0, static_cast<int>(replicas)).size(), batch};
  const TracedTraining traced = trace_training(traced_model(blueprint, data.rows.get()), spec, blueprint.weights, shape);
  MirroredState state = fresh_state(blueprint, {}, {});
  if (blueprint.stored) {
    const Restored restored = restore_from_file(*blueprint.stored, blueprint.keys, restore_rules(blueprint, true), state, optimizer.get());
    for (const std::string& note : restored.notes) log.info("note: " + note);
  }

  log.result(summarize(*blueprint.model, blueprint.semantics).text());
  double weights = 0, reduced = 0, activations = 0;
  for (const WeightName& name : blueprint.names) weights += static_cast<double>(name.weight->variable.type.bytes());
  for (const auto& gradient : traced.step.gradients) reduced += static_cast<double>(gradient.value.type().bytes());
  for (const auto& update : traced.step.updates) reduced += static_cast<double>(update.value.type().bytes());
  const PlanRequest request = [&] {
    PlanRequest r;
    for (const auto& gradient : traced.step.gradients) r.targets.push_back(gradient.value.id());
    for (const auto& report : traced.step.reports) r.targets.push_back(report.value.id());
    for (const auto& input : traced.step.inputs) r.inputs.push_back(input.value.id());
    return r;
  }();
  activations = static_cast<double>(plan_graph(*traced.step.graph, request).arena_bytes);
  const double slots = reduced * static_cast<double>(optimizer->slots().size());
  const std::string rows = shape.rows * replicas == batch ? fmt::format("{}", shape.rows) : fmt::format("{} and fewer", shape.rows);
  log.result(fmt::format("data            {} rows, {} steps an epoch of {} rows; {} replicas of {} rows", data.rows->rows(), (data.rows->rows() + batch - 1) / batch, batch, replicas, rows));
  for (const std::string& note : data.notes) log.result("note: " + note);
  log.result(fmt::format("memory a rank   weights {}, activations {}, gradients {}, optimizer {} shared by the ranks (one replica a rank)", bytes_text(weights), bytes_text(activations), bytes_text(reduced), bytes_text(slots)));
  log.result(fmt::format("reduced a step  {}", bytes_text(reduced)));
  log.result(fmt::format("checkpoint      {}", bytes_text(weights + slots)));
  for (const std::string& line : advice(blueprint, spec)) log.result("note: " + line);
  log.result(fmt::format("{}: nothing is wrong", job_file));
}

}  // namespace

/// lockstep check JOB.yaml
Command check_command() {
  return {"check", "Every error of a job at once, without MPI or GPU; then shapes, memory, bytes a step", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto job = std::make_shared<std::string>();
            auto overrides = std::make_shared<std::vector<std::string>>();
            app.add_option("job", *job, "The job file")->required();
            app.add_option("overrides", *overrides, "key.path=value: keys of the job, changed for this check");
            return [job, overrides, &global] {
              const std::unique_ptr<Communicator> alone = make_single_communicator();
              check(*alone, Log(true, global.quiet), *job, *overrides);
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
