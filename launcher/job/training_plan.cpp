#include "launcher/job/training_plan.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/class_config.h"

namespace lockstep {

namespace {

/// One value for each output of the model, from a bare value, a list (null for a hole) or a mapping by output.
std::vector<Value> by_output(const Blueprint& blueprint, const Value& value, std::string_view what, bool list_is_one) {
  const std::vector<Model::Output>& outputs = blueprint.model->outputs;
  std::vector<Value> result(outputs.size());
  if (value.is_null()) return result;
  std::vector<std::string> names;
  for (const Model::Output& output : outputs) names.push_back(output.key);
  const bool one_config = value.is_map() && (value.find("type") || value.find("class_name"));
  if (value.is_map() && !one_config) {
    Problems problems;
    for (const auto& [key, member] : value.as_map()) {
      const auto found = std::find(names.begin(), names.end(), key);
      if (found == names.end()) {
        problems.add(problem_at(member.key_place().source ? member.key_place() : member.place(), "Y31", fmt::format("{}: the model has no output '{}'{}; outputs: {}", what, printable(key), did_you_mean(key, names), fmt::join(names, ", "))));
        continue;
      }
      result[static_cast<size_t>(found - names.begin())] = member;
    }
    problems.raise();
    return result;
  }
  if (value.is_list() && !(list_is_one && outputs.size() == 1)) {
    if (value.size() != outputs.size()) {
      fail_at(value.place(), "Y37", fmt::format("{}: {} outputs ({}) but {} given; use null (~) for an output without one", what, outputs.size(), fmt::join(names, ", "), value.size()));
    }
    return {value.as_list().begin(), value.as_list().end()};
  }
  std::fill(result.begin(), result.end(), value);
  return result;
}

const Value& job_or(const Value& from_job, const Value& compiled, std::string_view key, const Value& nothing) {
  if (!from_job.is_null() && !(from_job.is_map() && from_job.size() == 0)) return from_job;
  const Value* found = compiled.find(key);
  return found ? *found : nothing;
}

std::map<int64_t, double> read_class_weight(const Value& value) {
  std::map<int64_t, double> weights;
  if (value.is_null()) return weights;
  for (const auto& [key, member] : value.as_map()) {
    int64_t label = 0;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), label);
    if (code != std::errc() || end != key.data() + key.size()) fail_at(member.key_place(), "Y12", fmt::format("train.class_weight: expected a class number, found '{}'", printable(key)));
    weights[label] = FieldType<double>::read(member, "train.class_weight." + key);
  }
  return weights;
}

std::vector<Value> as_metric_list(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_list()) return {value.as_list().begin(), value.as_list().end()};
  return {value};
}

bool has_target(const RowSource& data, const std::string& output) {
  return std::any_of(data.columns().begin(), data.columns().end(), [&](const RowSource::Column& column) { return column.role == RowSource::Role::target && column.name == output; });
}

}  // namespace

TracedModel traced_model(const Blueprint& blueprint, const RowSource* data) {
  TracedModel traced;
  Model* model = blueprint.model.get();
  traced.call = [model](LayerContext& context, std::span<const Symbol> inputs) { return model->call(context, inputs); };
  Problems problems;
  for (const Model::Input& input : probe_inputs(blueprint, data)) {
    if (std::any_of(input.shape.begin(), input.shape.end(), [](int64_t size) { return size < 0; })) {
      problems.add({"M30", input.name, fmt::format("an axis of this input is open in the model and in the data; set warm_up.shapes: {{{}: [...]}}", input.name), {}});
    }
    traced.inputs.push_back({input.name, {input.dtype, input.shape}});
  }
  problems.raise();
  for (const Model::Output& output : model->outputs) traced.outputs.push_back(output.key);
  traced.dtype_policy = model->dtype_policy;
  traced.semantics = blueprint.semantics;
  return traced;
}

TrainingSpec training_spec(const Blueprint& blueprint, const RowSource& data) {
  const TrainSection& train = blueprint.job->job.train;
  TrainingSpec spec;
  spec.columns = data.columns();
  spec.class_weight = read_class_weight(train.class_weight);
  const Value nothing;
  const Value& losses = job_or(train.losses, blueprint.compile_config, "loss", nothing);
  const Value& weights = job_or(train.loss_weights, blueprint.compile_config, "loss_weights", nothing);
  const std::vector<Value> loss_of = by_output(blueprint, losses, "train.losses", true);
  const std::vector<Value> weight_of = by_output(blueprint, weights, "train.loss_weights", true);
  const std::vector<Value> metrics_of = by_output(blueprint, train.metrics, "train.metrics", true);
  const bool bare = !losses.is_null() && !losses.is_list() && !(losses.is_map() && !losses.find("type") && !losses.find("class_name"));
  for (size_t i = 0; i < blueprint.model->outputs.size(); ++i) {
    TrainingSpec::Output output;
    const Value& loss = loss_of[i].is_list() && loss_of[i].size() == 1 ? loss_of[i].as_list()[0] : loss_of[i];
    // A bare loss is for every output that has targets.
    const bool skipped = bare && blueprint.model->outputs.size() > 1 && !has_target(data, blueprint.model->outputs[i].key);
    if (!loss.is_null() && !skipped) output.loss = make_loss(loss);
    if (!weight_of[i].is_null()) output.loss_weight = FieldType<double>::read(weight_of[i].is_list() ? weight_of[i].as_list().at(0) : weight_of[i], "train.loss_weights");
    output.metrics = as_metric_list(metrics_of[i]);
    spec.outputs.push_back(std::move(output));
  }
  return spec;
}

std::shared_ptr<const Optimizer> compiled_optimizer(const Blueprint& blueprint, std::string_view keras_2_semantics) {
  const Value* compiled = blueprint.compile_config.find("optimizer");
  if (!compiled || compiled->is_null()) return nullptr;
  Value config = *compiled;
  if (blueprint.semantics == 2 && config.is_map() && config.find("config")) config.find("config")->set("semantics", keras_2_semantics);
  return make_optimizer(config);
}

std::shared_ptr<const Optimizer> job_optimizer(const Blueprint& blueprint) {
  const Value& given = blueprint.job->job.train.optimizer;
  if (!given.is_null()) return make_optimizer(given);
  if (std::shared_ptr<const Optimizer> compiled = compiled_optimizer(blueprint, "keras-2")) return compiled;
  throw Error("Y11", blueprint.target, "'train.optimizer' is required: the restored file has none compiled in");
}

void refuse_unavailable(const LoadedJob& loaded) {
  const Job& job = loaded.job;
  Problems problems;
  const auto refuse = [&](bool given, std::vector<std::string_view> path, const std::string& message) {
    if (!given) return;
    const Value* value = &loaded.resolved;
    std::string name;
    for (const std::string_view key : path) {
      if (value) value = value->find(key);
      name += (name.empty() ? "" : ".") + std::string(key);
    }
    problems.add(problem_at(value ? value->place() : Place{}, "Y13", fmt::format("{}: {}", name, message)));
  };
  refuse(!job.plugins.empty(), {"plugins"}, "this release loads no C++ layers; declare the layer under custom_layers");
  refuse(job.reduction != "exact", {"reduction"}, "on CPUs 'exact' is also the fastest, and the only one; leave the key out");
  refuse(job.train.callbacks.size() > 0, {"train", "callbacks"}, "this release has no callbacks; leave the key out");
  refuse(job.train.nan != "abort", {"train", "nan"}, "this release ends the run at a value that is not finite (abort); leave the key out");
  refuse(job.train.loss_scale.kind == LossScale::Kind::dynamic || job.train.loss_scale.kind == LossScale::Kind::fixed, {"train", "loss_scale"}, "this release does not scale losses; write none or leave the key out");
  problems.raise();
}

Value keras_losses(const Blueprint& blueprint, const TrainingSpec& spec) {
  if (spec.outputs.size() == 1) return spec.outputs[0].loss ? to_keras(*spec.outputs[0].loss) : Value();
  Value losses = Value::list();
  if (blueprint.model->dict_outputs) losses = Value::map();
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    Value loss = spec.outputs[i].loss ? to_keras(*spec.outputs[i].loss) : Value();
    if (blueprint.model->dict_outputs) {
      losses.set(blueprint.model->outputs[i].key, std::move(loss));
    } else {
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

std::vector<std::string> advice(const Blueprint& blueprint, const TrainingSpec& spec) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.outputs[i].loss) continue;
    const Value written = to_keras(*spec.outputs[i].loss);
    const Value* from_logits = written.at("config").find("from_logits");
    if (!from_logits || !from_logits->is_boolean() || from_logits->as_boolean()) continue;
    const Model::Reference& from = blueprint.model->outputs[i].from;
    if (from.call < 0) continue;
    Layer& layer = *blueprint.model->layers[static_cast<size_t>(blueprint.model->calls[static_cast<size_t>(from.call)].layer)];
    Fields fields;
    layer.fields(fields);
    const Value config = write_fields(fields);
    const Value* activation = config.find("activation");
    const std::string type(layer.type());
    const bool ends_linear = activation && (activation->is_null() || (activation->is_string() && (activation->as_string() == "linear" || activation->as_string() == "relu")));
    if (ends_linear && type != "Softmax") {
      lines.push_back(fmt::format("output '{}': {} with from_logits: false, but its layer ends without softmax or sigmoid: its values are taken for probabilities; if they are logits, write from_logits: true", blueprint.model->outputs[i].key, spec.outputs[i].loss->type()));
    }
  }
  return lines;
}

}  // namespace lockstep
