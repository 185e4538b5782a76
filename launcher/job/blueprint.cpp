#include "launcher/job/blueprint.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/json/json.h"
#include "io/model_file/keras_classes.h"
#include "launcher/job/mirror.h"
#include "layers/custom/custom_layer.h"
#include "layers/model_builder.h"
#include "layers/shapes.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

bool is_job_file(const std::string& path) {
  const std::string extension = fs::path(path).extension();
  return fs::is_regular_file(path) && (extension == ".yaml" || extension == ".yml");
}

/// The run folder that a checkpoint folder belongs to: runs/a for runs/a/checkpoints/step_00000500.
fs::path run_folder_of(const fs::path& checkpoint) { return checkpoint.lexically_normal().parent_path().parent_path(); }

/// What rank 0 learnt from files and every rank needs.
struct Facts {
  std::string job_file;      // to load; empty: none
  std::string architecture;  // Keras's config as JSON; empty: the job describes the model
  std::string architecture_file;
  std::string source;
  int64_t semantics = 3;
  Value compile_config;
  std::vector<FileWeight> weights;

  Value write() const {
    Value list = Value::list();
    for (const FileWeight& weight : weights) list.push_back(Value(Value::Map{{"layer", weight.layer}, {"variable", weight.variable}, {"shape", FieldType<Shape>::write(weight.shape)}}));
    return Value(Value::Map{{"job_file", job_file}, {"architecture", architecture}, {"architecture_file", architecture_file}, {"source", source}, {"semantics", semantics}, {"compile_config", compile_config}, {"weights", std::move(list)}});
  }
  static Facts read(const std::string& text) {
    const Value value = read_json_text("rank 0", text, "X09");
    Facts facts;
    facts.job_file = value.at("job_file").as_string();
    facts.architecture = value.at("architecture").as_string();
    facts.architecture_file = value.at("architecture_file").as_string();
    facts.source = value.at("source").as_string();
    facts.semantics = value.at("semantics").as_integer();
    facts.compile_config = value.at("compile_config");
    for (const Value& weight : value.at("weights").as_list()) facts.weights.push_back({weight.at("layer").as_string(), weight.at("variable").as_string(), FieldType<Shape>::read(weight.at("shape"), "shape")});
    return facts;
  }
};

/// The weights of a file, for the stubs of unknown classes.
std::vector<FileWeight> weights_of(const StoredModel& stored) {
  std::vector<FileWeight> weights;
  for (const StoredTensor& tensor : stored.tensors) weights.push_back({tensor.layer.empty() ? tensor.object_path : tensor.layer, tensor.variable, tensor.type.shape});
  return weights;
}

void take_architecture(Facts& facts, const StoredModel& stored) {
  facts.semantics = stored.semantics;
  if (stored.compile_config) facts.compile_config = *stored.compile_config;
  facts.weights = weights_of(stored);
}

/// Throws for every class of the user's own that the file names and the job does not map: its name, where it sits, what to paste.
void check_custom_classes(const StoredModel& stored, const CustomObjects& mapped) {
  Problems problems;
  const std::vector<FileWeight> weights = weights_of(stored);
  for (const Value& object : stored.custom_objects) {
    const std::string registered = object.at("class_name").as_string();
    const std::string class_name = registered.substr(registered.rfind('>') + 1);
    if (mapped.find(registered, class_name)) continue;
    const std::string path = object.at("path").as_string();
    const std::string place = fmt::format("{}: {}", stored.file, path.empty() ? "the model itself" : printable(path));
    if (path.empty()) {
      problems.add({"M20", place, fmt::format("class '{0}' is neither Keras's nor declared; nothing was run. Describe what it computes under model: in a job, and say so with restore: {{from: {1}, custom_objects: {{{0}: model}}}}", printable(registered), stored.file), {}});
      continue;
    }
    const Value* config = object.find("config");
    problems.add({"M20", place, fmt::format("class '{}' is neither Keras's nor declared; nothing was run. To declare it, paste this into the job and fill in what it computes:\n{}", printable(registered), custom_layer_stub(class_name, registered, config ? *config : Value::map(), path, weights)), {}});
  }
  problems.raise();
}

/// A file whose architecture nobody gives.
[[noreturn]] void refuse_without_architecture(const StoredModel& stored) {
  check_custom_classes(stored, CustomObjects());
  throw Error("M20", stored.file, "the file holds weights alone; describe the model in a job (model:) and give this file as restore.from");
}

class Builder {
 public:
  Builder(Communicator& communicator, const BlueprintRequest& request) : communicator_(communicator), request_(request) {}

  Blueprint build() {
    blueprint_.target = request_.target;
    Facts facts = Facts::read(on_root(communicator_, "reading the target", [&] { return write_json(read_files().write()); }));
    together(communicator_, "building the model", [&] {
      if (!facts.job_file.empty() && !blueprint_.job) blueprint_.job = load_job(facts.job_file, request_.overrides);
      blueprint_.source = facts.source;
      blueprint_.semantics = static_cast<int>(facts.semantics);
      blueprint_.compile_config = facts.compile_config;
      build_model_from(facts);
      name_weights();
    });
    return std::move(blueprint_);
  }

 private:
  /// Rank 0: opens what the target names.
  Facts read_files() {
    Facts facts;
    const std::string& target = request_.target;
    if (is_job_file(target)) {
      facts.job_file = target;
      blueprint_.job = load_job(target, request_.overrides);
      if (!request_.command.empty()) require_keys(*blueprint_.job, request_.command);
      const Job& job = blueprint_.job->job;
      if (job.restore.from) open_source(*job.restore.from, facts);
      if (blueprint_.stored) check_custom_classes(*blueprint_.stored, CustomObjects(job.restore.custom_objects));
      read_job_architecture(facts);
      return facts;
    }
    if (!fs::exists(target) && target.ends_with(".yaml")) load_job(target, request_.overrides);  // throws Y01
    if (fs::is_directory(target)) {
      if (std::optional<Search> search = find_checkpoint(target)) {
        read_run(*search, facts);
        return facts;
      }
    }
    if (!request_.overrides.empty()) throw Error("Y41", "command line", fmt::format("'{}': only a job file's keys can be overridden, and {} is none", request_.overrides.front(), target));
    open_source(target, facts);
    if (!blueprint_.stored->architecture) refuse_without_architecture(*blueprint_.stored);
    facts.architecture = write_json(*blueprint_.stored->architecture);
    facts.architecture_file = target;
    return facts;
  }

  void read_run(Search& search, Facts& facts) {
    for (const Problem& problem : search.skipped) blueprint_.search_notes.push_back(problem.message);
    if (!search.newest) throw Error("C01", request_.target, "no checkpoint has been committed there");
    const fs::path run = run_folder_of(search.newest->folder);
    facts.job_file = (run / "config.resolved.yaml").string();
    blueprint_.job = load_job(facts.job_file, request_.overrides);
    const std::string checkpoint_model = (fs::path(search.newest->folder) / "model.keras").string();
    read_job_architecture(facts);
    open_source(checkpoint_model, facts);
    if (const Value* semantics = search.newest->state.find("semantics")) facts.semantics = semantics->as_integer();
    blueprint_.checkpoint = std::move(search.newest);
  }

  void open_source(const std::string& path, Facts& facts) {
    if (std::optional<Search> search = fs::is_directory(path) ? find_checkpoint(path) : std::nullopt) {
      if (!search->newest) throw Error("C01", path, "no checkpoint has been committed there");
      open_source((fs::path(search->newest->folder) / "model.keras").string(), facts);
      blueprint_.checkpoint = std::move(search->newest);
      return;
    }
    blueprint_.stored = open_model_file(path);
    facts.source = path;
    take_architecture(facts, *blueprint_.stored);
  }

  /// Where the job's model is `{from: FILE}`, or is not said and the restored file knows it.
  void read_job_architecture(Facts& facts) {
    const Job& job = blueprint_.job->job;
    if (const Value* from = job.model.find("from")) {
      const std::string path = from->as_string();
      if (blueprint_.stored && path == facts.source && blueprint_.stored->architecture) {
        facts.architecture = write_json(*blueprint_.stored->architecture);
      } else {
        facts.architecture = write_json(read_architecture(path));
      }
      facts.architecture_file = path;
    } else if (job.model.is_null() || job.model.size() == 0) {
      if (!blueprint_.stored) throw Error("Y11", blueprint_.target, "'model' is required: describe it, or give restore.from");
      if (!blueprint_.stored->architecture) refuse_without_architecture(*blueprint_.stored);
      facts.architecture = write_json(*blueprint_.stored->architecture);
      facts.architecture_file = facts.source;
    }
  }

  void build_model_from(const Facts& facts) {
    blueprint_.registry = builtin_layers();
    const Job* job = blueprint_.job ? &blueprint_.job->job : nullptr;
    if (job) add_custom_layers(blueprint_.registry, job->custom_layers);
    const auto own_model = [&]() -> std::unique_ptr<Model> {
      if (!job || !job->model.find("layers")) return nullptr;
      return build_model(job->model, blueprint_.registry);
    };
    if (facts.architecture.empty()) {
      blueprint_.model = own_model();
      if (!blueprint_.model) throw Error("Y11", blueprint_.target, "'model.layers' is required");
      keep_object_paths(*job);
    } else {
      const Value config = read_json_text(facts.architecture_file, facts.architecture, "M23");
      KerasReading reading{blueprint_.registry, job ? CustomObjects(job->restore.custom_objects) : CustomObjects(), own_model, is_keras_class, facts.weights};
      KerasModel read = build_from_keras(config, reading);
      blueprint_.model = std::move(read.model);
      for (std::string& note : read.notes) blueprint_.notes.push_back(std::move(note));
    }
  }

  /// A subclassed model keeps its layers under attributes: what `rename` says when reading holds for writing too.
  void keep_object_paths(const Job& job) {
    for (const auto& [from, to] : job.restore.rename) blueprint_.model->object_paths.emplace(to, from);
  }

  void name_weights() {
    ModelShapes shapes = trace_shapes(*blueprint_.model, blueprint_.semantics);
    blueprint_.weights = std::move(shapes.weights);
    blueprint_.output_types = std::move(shapes.outputs);
    blueprint_.names = names_of(*blueprint_.model, blueprint_.weights);
    for (const WeightName& name : blueprint_.names) {
      WeightKeys keys;
      keys.path = name.weight->variable.path;
      keys.layer = name.weight->layer;
      keys.name = name.weight->name;
      keys.type = name.weight->variable.type;
      keys.object_path = name.object_path;
      keys.object_index = name.object_index;
      keys.keras2_path = name.keras2_object_path;
      keys.top_layer = name.top_layer;
      keys.legacy_index = name.legacy_index;
      blueprint_.keys.push_back(std::move(keys));
    }
  }

  Communicator& communicator_;
  const BlueprintRequest& request_;
  Blueprint blueprint_;
};

}  // namespace

Blueprint make_blueprint(Communicator& communicator, const BlueprintRequest& request) { return Builder(communicator, request).build(); }

std::vector<Model::Input> probe_inputs(const Blueprint& blueprint, const RowSource* data) {
  std::vector<Model::Input> inputs = blueprint.model->inputs;
  Problems problems;
  for (Model::Input& input : inputs) {
    if (blueprint.job) {
      const auto& shapes = blueprint.job->job.warm_up.shapes;
      if (const auto given = shapes.find(input.name); given != shapes.end()) {
        if (given->second.size() != input.shape.size()) problems.add({"Y32", "warm_up.shapes." + input.name, fmt::format("has {} axes, the input has {}", given->second.size(), input.shape.size()), {}});
        for (size_t i = 0; i < input.shape.size() && i < given->second.size(); ++i) {
          if (input.shape[i] < 0) input.shape[i] = given->second[i];
        }
      }
    }
    if (data) {
      for (const RowSource::Column& column : data->columns()) {
        if (column.role != RowSource::Role::input || column.name != input.name || column.row.shape.size() != input.shape.size()) continue;
        for (size_t i = 0; i < input.shape.size(); ++i) {
          if (input.shape[i] < 0) input.shape[i] = column.row.shape[i];
        }
      }
    }
  }
  problems.raise();
  return inputs;
}

DataExpectation expectation_of(const Blueprint& blueprint) {
  DataExpectation expectation;
  for (const Model::Input& input : blueprint.model->inputs) expectation.inputs.push_back({input.name, input.shape, input.dtype});
  for (size_t i = 0; i < blueprint.output_types.size(); ++i) {
    const Shape& shape = blueprint.output_types[i].shape;
    expectation.outputs.push_back({blueprint.model->outputs[i].key, shape.empty() ? Shape{} : Shape(shape.begin() + 1, shape.end()), 0});
  }
  return expectation;
}

MirroredState fresh_state(const Blueprint& blueprint, std::span<const std::string> gradients, std::span<const std::string> updates) {
  std::vector<Variable> variables;
  for (const WeightName& name : blueprint.names) variables.push_back(name.weight->variable);
  MirroredState state(std::move(variables), gradients, updates);
  const auto seed = static_cast<uint64_t>(blueprint.job ? blueprint.job->job.seed : 0);
  for (size_t v = 0; v < blueprint.names.size(); ++v) {
    const Weight& weight = *blueprint.names[v].weight;
    state.set(v, weight.initializer->make(weight.variable.type, seed, weight.variable.path));
  }
  return state;
}

RestoreRules restore_rules(const Blueprint& blueprint, bool trains) {
  RestoreRules rules;
  rules.allow_not_finite = !trains;
  if (!blueprint.job) return rules;
  const RestoreSection& section = blueprint.job->job.restore;
  rules.match = {section.rename, section.allow_missing, section.allow_unused, section.allow_cast};
  rules.allow_not_finite = rules.allow_not_finite || section.allow_not_finite;
  rules.optimizer = section.optimizer == "keep" ? OptimizerRestore::keep : section.optimizer == "reset" ? OptimizerRestore::reset : OptimizerRestore::automatic;
  return rules;
}

Restored restore_state(Communicator& communicator, const Blueprint& blueprint, MirroredState& state, const RestoreRules& rules, const Optimizer* optimizer) {
  Restored restored;
  on_root(communicator, "restoring the weights", [&]() -> std::string {
    if (blueprint.stored) restored = restore_from_file(*blueprint.stored, blueprint.keys, rules, state, optimizer);
    return {};
  });
  broadcast_state(communicator, state);
  return restored;
}

}  // namespace lockstep
