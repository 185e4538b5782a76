#include "layers/layer.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "core/random/philox.h"
#include "layers/fields.h"

namespace lockstep {

namespace {

/// A weight that the layer does not have can't be borrowed: told, not left alone.
void check_borrowed(const Value& borrow, const std::vector<std::string>& weights, const std::string& path) {
  for (const auto& [name, source] : borrow.as_map()) {
    if (name == "transposed" || std::ranges::find(weights, name) != weights.end()) continue;
    fail_at(source.place(), "Y36", fmt::format("{} has no weight '{}' to borrow{}", path, printable(name), did_you_mean(name, weights)));
  }
}

}  // namespace

void Layer::base_fields(Fields& fields) {
  fields.add("name", name, "the layer's name, unique in its model");
  fields.add("trainable", trainable, "false: its weights keep their values");
  fields.add("dtype", dtype, "dtype policy: float32, mixed_float16, mixed_bfloat16, ...; null: the model's");
  Field& borrowed = fields.add("borrow", borrow, "weights taken from other layers: {kernel: layer/kernel, transposed: true}");
  if (borrow.is_null()) borrowed.write = nullptr;
  Field& activity = fields.add("activity_regularizer", activity_regularizer, "a loss of the layer's output");
  if (!activity_regularizer) activity.write = nullptr;
  // Where Keras 2 repeats the shape of a model's input; the model's inputs say it.
  fields.ignore("batch_input_shape");
}

DTypePolicy policy_of(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_map()) {
    const Value* config = value.find("config");
    const Value* class_name = value.find("class_name");
    if (config && config->is_map() && class_name && class_name->is_string()) {
      const std::string& name = class_name->as_string();
      // "Policy" is Keras 2's.
      if (name == "DTypePolicy" || name == "FloatDTypePolicy" || name == "Policy") return policy_of(config->at("name"));
      fail_at(value.place(), "Y30", fmt::format("unknown dtype policy class '{}'; known: DTypePolicy", printable(name)));
    }
    fail_at(value.place(), "Y12", "a dtype policy is a name (float32, mixed_float16, mixed_bfloat16) or {class_name: DTypePolicy, config: {name: ...}}");
  }
  const std::string& name = value.as_string();
  if (name == "mixed_float16") return {DType::f16, DType::f32};
  if (name == "mixed_bfloat16") return {DType::bf16, DType::f32};
  if (const auto dtype = dtype_from_name(name)) return {*dtype, *dtype};
  const std::vector<std::string> known = {"float32", "float64", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "int32", "int64", "uint8", "bool"};
  fail_at(value.place(), "Y30", fmt::format("unknown dtype policy '{}'{}", printable(name), did_you_mean(name, known)));
}

const Weight* WeightList::find(std::string_view path) const {
  const auto found = std::ranges::find(weights_, path, [](const Weight& weight) -> std::string_view { return weight.variable.path; });
  return found == weights_.end() ? nullptr : &*found;
}

const Weight& WeightList::add(Weight weight) {
  if (const Weight* known = find(weight.variable.path)) {
    if (known->variable.type != weight.variable.type) {
      throw Error("M12", weight.layer, fmt::format("weight '{}' is {}, but this call needs {}; calls of one layer share their weights, so inputs must have one shape", weight.name, known->variable.type.text(), weight.variable.type.text()));
    }
    return *known;
  }
  weights_.push_back(std::move(weight));
  return weights_.back();
}

LayerContext::LayerContext(Graph& graph, WeightList& weights, Settings settings) : graph_(graph), weights_(weights), settings_(std::move(settings)) {
  const DTypePolicy policy = policy_of(settings_.dtype_policy);
  compute_dtype_ = policy.compute;
  variable_dtype_ = policy.variable;
}

Symbol LayerContext::computed(Symbol x) const { return x.dtype() == compute_dtype_ ? x : ops::cast(x, compute_dtype_); }

Symbol LayerContext::weight(const WeightSpec& spec) {
  if (borrows(spec.name)) return borrowed(spec, layer_->borrow.at(spec.name).as_string());
  const Symbol stored = stored_weight(spec);
  return is_floating(stored.dtype()) && is_floating(compute_dtype_) ? computed(stored) : stored;
}

bool LayerContext::borrows(std::string_view name) {
  if (!layer_) return false;
  asked_.emplace_back(name);
  return layer_->borrow.find(name) != nullptr;
}

Symbol LayerContext::borrowed(const WeightSpec& spec, std::string_view source) {
  Symbol value = borrow(source);
  const Value* transposed = layer_->borrow.find("transposed");
  const bool turn = transposed && transposed->as_boolean() && value.shape().size() == 2;
  if (turn) value = ops::transpose(value, {1, 0});
  if (value.shape() != spec.shape) {
    const bool reversed = Shape(spec.shape.rbegin(), spec.shape.rend()) == value.shape() && spec.shape.size() == 2;
    std::string hint;
    if (reversed) hint = turn ? "; leave out transposed: true" : "; set transposed: true?";
    throw Error("Y36", path_, fmt::format("borrows '{}', which is {}{}, but needs {} for '{}'{}", source, text_of(value.shape()), turn ? " when transposed" : "", text_of(spec.shape), spec.name, hint));
  }
  return value;
}

Symbol LayerContext::stored_weight(const WeightSpec& spec) {
  Weight weight;
  weight.variable = {path_.empty() ? spec.name : path_ + "/" + spec.name, {spec.dtype.value_or(variable_dtype_), spec.shape}, spec.trainable && trainable_};
  weight.layer = path_;
  weight.name = spec.name;
  weight.initializer = spec.initializer;
  weight.regularizer = spec.regularizer;
  weight.owner = layer_;
  const Weight& known = weights_.add(std::move(weight));
  const auto updated = std::ranges::find(updates_, known.variable.path, &Update::variable);
  return updated != updates_.end() ? updated->value : graph_.variable(known.variable);
}

Symbol LayerContext::borrow(std::string_view layer_and_weight) {
  std::string scope = path_;
  while (true) {
    const std::string path = scope.empty() ? std::string(layer_and_weight) : fmt::format("{}/{}", scope, layer_and_weight);
    if (const Weight* weight = weights_.find(path)) {
      const Symbol stored = graph_.variable(weight->variable);
      return is_floating(stored.dtype()) && is_floating(compute_dtype_) ? computed(stored) : stored;
    }
    if (scope.empty()) break;
    const size_t slash = scope.rfind('/');
    scope = slash == std::string::npos ? "" : scope.substr(0, slash);
  }
  std::vector<std::string> known;
  for (const Weight& weight : weights_.all()) known.push_back(weight.variable.path);
  std::string hint = did_you_mean(layer_and_weight, known);
  if (hint.empty()) hint = known.empty() ? "; no layer before it has weights" : fmt::format("; known: {}", fmt::join(known, ", "));
  throw Error("Y36", path_, fmt::format("borrows '{}', a weight that no layer before it has{}", printable(layer_and_weight), hint));
}

void LayerContext::update(Symbol stored_weight, Symbol value) {
  if (!training()) return;
  const auto earlier = std::ranges::find(updates_, stored_weight, &Update::value);
  const Symbol kept = value.dtype() == stored_weight.dtype() ? value : ops::cast(value, stored_weight.dtype());
  if (earlier != updates_.end()) {
    earlier->value = kept;
    return;
  }
  const Graph::ValueInfo& info = graph_.value(stored_weight.id());
  if (info.origin != Graph::Origin::variable) throw Error("X04", path_, "an update is not of a stored weight");
  updates_.push_back({info.name, kept});
}

void LayerContext::add_loss(Symbol loss) { losses_.push_back(loss); }

uint64_t LayerContext::random_stream() {
  auto taken = std::ranges::find(streams_, path_, &std::pair<std::string, uint64_t>::first);
  if (taken == streams_.end()) taken = streams_.insert(streams_.end(), {path_, 0});
  return RandomKey{0, stream_of(path_)}.with(taken->second++).stream;
}

std::vector<Symbol> LayerContext::call(Layer& layer, std::span<const Symbol> inputs) {
  const std::string path_before = path_;
  const Layer* const layer_before = layer_;
  const bool trainable_before = trainable_;
  const DType compute_before = compute_dtype_;
  const DType variable_before = variable_dtype_;
  std::vector<std::string> asked_before = std::exchange(asked_, {});

  path_ = path_.empty() ? layer.name : path_ + "/" + layer.name;
  layer_ = &layer;
  trainable_ = trainable_ && layer.trainable;
  if (!layer.dtype.is_null()) {
    const DTypePolicy policy = policy_of(layer.dtype);
    compute_dtype_ = policy.compute;
    variable_dtype_ = policy.variable;
  }
  const LayerScope scope(graph_, path_);
  std::vector<Symbol> converted;
  for (const Symbol input : inputs) converted.push_back(is_floating(input.dtype()) && is_floating(compute_dtype_) ? computed(input) : input);
  std::vector<Symbol> outputs = layer.call(*this, converted);
  if (layer.borrow.is_map()) check_borrowed(layer.borrow, asked_, path_);
  if (layer.activity_regularizer) {
    for (const Symbol output : outputs) {
      const double rows = output.shape().empty() ? 1 : static_cast<double>(std::max<int64_t>(settings_.global_rows, 1));
      add_loss(ops::multiply(layer.activity_regularizer->loss(output), 1 / rows));
    }
  }
  if (settings_.observe) settings_.observe(path_, outputs);

  path_ = path_before;
  layer_ = layer_before;
  trainable_ = trainable_before;
  compute_dtype_ = compute_before;
  variable_dtype_ = variable_before;
  asked_ = std::move(asked_before);
  return outputs;
}

}  // namespace lockstep
