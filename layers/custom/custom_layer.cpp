#include "layers/custom/custom_layer.h"

#include <algorithm>

#include <fmt/format.h>

#include "layers/custom/custom_types.h"
#include "layers/model_builder.h"

namespace lockstep {

std::string CustomType::parameters_text() const {
  if (parameters.empty()) return "it has none";
  std::string text = "its parameters: ";
  for (const auto& [name, standard] : parameters) {
    if (&name != &parameters.front().first) text += ", ";
    text += fmt::format("{} ({})", name, standard.is_null() ? std::string("required") : standard.described());
  }
  return text;
}

namespace {

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

/// The name after the `$` at `at`, or empty when that `$` is plain text.
std::string name_after(const std::string& text, size_t at) {
  size_t end = at + 1;
  if (end >= text.size() || !starts_name(text[end])) return {};
  while (end < text.size() && continues_name(text[end])) ++end;
  return text.substr(at + 1, end - at - 1);
}

std::string as_text(const Value& value, const std::string& name, const Place& place) {
  switch (value.kind()) {
    case Value::Kind::string: return value.as_string();
    case Value::Kind::integer: return std::to_string(value.as_integer());
    case Value::Kind::real: return fmt::format("{}", value.as_number());
    case Value::Kind::boolean: return value.as_boolean() ? "true" : "false";
    default: fail_at(value.place().source ? value.place() : place, "Y35", fmt::format("'${}' stands inside text, so it must be text or a number, found {}", name, value.described()));
  }
}

}  // namespace

Value substitute(const Value& value, const std::vector<std::pair<std::string, Value>>& parameters, const CustomType& type) {
  const auto find = [&](const std::string& name) -> const Value& {
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& parameter) { return parameter.first == name; });
    if (found != parameters.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& parameter : parameters) names.push_back(parameter.first);
    fail_at(value.place(), "Y35", fmt::format("'${}' is no parameter of custom layer '{}'{}; {}", name, type.name, did_you_mean(name, names), type.parameters_text()));
  };
  if (value.is_string()) {
    const std::string& text = value.as_string();
    std::string result;
    for (size_t i = 0; i < text.size();) {
      const std::string name = text[i] == '$' ? name_after(text, i) : std::string();
      if (name.empty()) {
        result += text[i++];
        continue;
      }
      const Value& parameter = find(name);
      if (name.size() + 1 == text.size()) {
        Value whole = parameter;
        if (!whole.place().source) whole.with_place(value.place());
        return whole.with_key_place(value.key_place());
      }
      result += as_text(parameter, name, value.place());
      i += name.size() + 1;
    }
    return Value(std::move(result)).with_place(value.place()).with_key_place(value.key_place());
  }
  Value result = value;
  if (value.is_list()) {
    for (Value& part : result.as_list()) part = substitute(part, parameters, type);
  } else if (value.is_map()) {
    for (auto& [key, part] : result.as_map()) part = substitute(part, parameters, type);
  }
  return result;
}

CustomLayer::CustomLayer(std::shared_ptr<const CustomTypes> types, const CustomType& definition)
    : types_(std::move(types)), definition_(definition), values_(definition.parameters) {}

void CustomLayer::fields(Fields& fields) {
  for (size_t i = 0; i < values_.size(); ++i) {
    Field& field = fields.add(values_[i].first, values_[i].second, fmt::format("a parameter of custom layer '{}'", definition_.name));
    if (definition_.parameters[i].second.is_null()) field.require();
  }
}

void CustomLayer::check_parameters(const Value& config, const std::vector<std::string>& other, const std::string& path) const {
  Problems problems;
  std::vector<std::string> names;
  for (const auto& [name, standard] : definition_.parameters) names.push_back(name);
  for (const auto& [key, value] : config.as_map()) {
    if (std::find(other.begin(), other.end(), key) != other.end() || std::find(names.begin(), names.end(), key) != names.end()) continue;
    const Place& place = value.key_place().source ? value.key_place() : value.place();
    problems.add(problem_at(place, "Y35", fmt::format("{}: custom layer '{}' has no parameter '{}'{}; {}", path, definition_.name, printable(key), did_you_mean(key, names), definition_.parameters_text())));
  }
  for (const auto& [name, standard] : definition_.parameters) {
    const Value* given = config.find(name);
    if (standard.is_null() && (!given || given->is_null())) {
      problems.add(problem_at(config.place(), "Y35", fmt::format("{}: custom layer '{}' needs its parameter '{}'; {}", path, definition_.name, name, definition_.parameters_text())));
    }
  }
  problems.raise();
}

namespace {

struct OwnWeight {
  Value shape;
  std::shared_ptr<const Initializer> initializer;
  bool trainable = true;
  std::shared_ptr<const Regularizer> regularizer;

  void fields(Fields& fields) {
    fields.add("shape", shape, "sizes: numbers, or last for the size of the first input's last axis").require();
    fields.add("initializer", initializer, "how a new weight is filled; glorot_uniform by default");
    fields.add("trainable", trainable, "false: kept as it is");
    fields.add("regularizer", regularizer, "a loss of the weight");
  }
};

void check_weight_shape(const Value& shape, const std::string& path) {
  for (const Value& axis : shape.as_list()) {
    if (axis.is_string() && axis.as_string() == "last") continue;
    if (!axis.is_integer() || axis.as_integer() <= 0) fail_at(axis.place(), "Y13", fmt::format("{}: an axis is a number > 0, or last (the size of the first input's last axis), found {}", path, axis.described()));
  }
}

}  // namespace

Model& CustomLayer::inner() {
  if (inner_) return *inner_;
  const std::string path = join_path("custom_layers", definition_.name);
  Problems problems;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].second.is_null() && definition_.parameters[i].second.is_null()) {
      problems.add(problem_at(definition_.place, "Y35", fmt::format("layer '{}': custom layer '{}' needs its parameter '{}'; {}", name, definition_.name, values_[i].first, definition_.parameters_text())));
    }
  }
  problems.raise();
  weights_.clear();

  GraphSection section;
  for (const std::string& input : definition_.inputs) {
    Model::Input& any = section.inputs.emplace_back();
    any.name = input;
    any.any_shape = true;
  }
  section.input_places = definition_.input_places;
  const Value weights = substitute(definition_.weights, values_, definition_);
  if (weights.is_map()) {
    for (const auto& [weight_name, described] : weights.as_map()) {
      problems.collect([&, &weight_name = weight_name, &described = described] {
        const std::string place = join_path(join_path(path, "weights"), weight_name);
        const auto own = read_described<OwnWeight>(described, place);
        check_weight_shape(own.shape, join_path(place, "shape"));
        weights_.push_back({{weight_name, {}, own.initializer ? own.initializer : make_initializer("glorot_uniform"), own.trainable, own.regularizer, {}},
                            own.shape,
                            described.key_place().source ? described.key_place() : described.place()});
      });
    }
  }
  problems.raise();
  // Keras numbers a layer's trainable weights before the others.
  std::stable_partition(weights_.begin(), weights_.end(), [](const OwnedWeight& weight) { return weight.spec.trainable; });
  for (const OwnedWeight& weight : weights_) {
    Model::Input& input = section.inputs.emplace_back();
    input.name = weight.spec.name;
    input.any_shape = true;
    section.input_places.push_back(weight.place);
    ++section.own_weights;
  }
  const Value layers = substitute(definition_.layers, values_, definition_);
  const Value outputs = substitute(definition_.outputs, values_, definition_);
  section.layers = &layers;
  section.outputs = &outputs;
  section.path = path;
  section.place = definition_.place;
  section.order = Model::Order::declared;
  inner_ = build_graph(section, types_->registry());
  return *inner_;
}

std::vector<Symbol> CustomLayer::call(LayerContext& context, std::span<const Symbol> inputs) {
  Model& model = inner();
  if (inputs.size() != definition_.inputs.size()) {
    throw Error("M23", "", fmt::format("'{}' takes {} inputs ({}) and is given {}", context.path(), definition_.inputs.size(), fmt::join(definition_.inputs, ", "), inputs.size()));
  }
  std::vector<Symbol> symbols(inputs.begin(), inputs.end());
  for (const OwnedWeight& weight : weights_) {
    WeightSpec spec = weight.spec;
    for (const Value& axis : weight.shape.as_list()) {
      if (axis.is_integer()) {
        spec.shape.push_back(axis.as_integer());
      } else if (inputs.empty() || inputs[0].shape().empty()) {
        throw Error("M23", "", fmt::format("'{}': the weight '{}' takes the size of the last axis of the first input, which has none", context.path(), spec.name));
      } else {
        spec.shape.push_back(inputs[0].last());
      }
    }
    symbols.push_back(context.weight(spec));
  }
  return model.call(context, symbols);
}

}  // namespace lockstep
