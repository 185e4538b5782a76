#include <fmt/format.h>

#include "layers/keras/keras_config.h"

namespace lockstep {

namespace {

/// YAML in one line, which is JSON for what needs quotes.
std::string flow(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return value.as_boolean() ? "true" : "false";
    case Value::Kind::integer: return std::to_string(value.as_integer());
    case Value::Kind::real: return fmt::format("{}", value.as_number());
    case Value::Kind::string: {
      std::string text = "\"";
      for (char c : printable(value.as_string())) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
      }
      return text + "\"";
    }
    case Value::Kind::list: {
      std::string text = "[";
      for (const Value& part : value.as_list()) text += (text.size() > 1 ? ", " : "") + flow(part);
      return text + "]";
    }
    case Value::Kind::map: {
      std::string text = "{";
      for (const auto& [key, part] : value.as_map()) text += fmt::format("{}{}: {}", text.size() > 1 ? ", " : "", flow(Value(key)), flow(part));
      return text + "}";
    }
  }
  return {};
}

bool is_base_key(std::string_view key) {
  for (std::string_view base : {"name", "trainable", "dtype", "dynamic", "autocast", "batch_input_shape", "activity_regularizer"}) {
    if (key == base) return true;
  }
  return false;
}

}  // namespace

std::string custom_layer_stub(const std::string& class_name, const std::string& registered_name, const Value& config, const std::string& layer,
                              const std::vector<FileWeight>& weights) {
  std::string text = fmt::format("custom_layers:\n  {}:\n", printable(class_name));
  std::string parameters;
  if (config.is_map()) {
    for (const auto& [key, value] : config.as_map()) {
      if (!is_base_key(key)) parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", printable(key), flow(value));
    }
  }
  if (!parameters.empty()) text += fmt::format("    parameters: {{{}}}\n", parameters);
  text += "    inputs: [x]\n";
  std::string own;
  std::string inside;
  for (const FileWeight& weight : weights) {
    std::string variable;
    if (weight.layer == layer) {
      variable = weight.variable;
    } else if (weight.layer.starts_with(layer + "/")) {
      variable = weight.layer.substr(layer.size() + 1) + "/" + weight.variable;
    } else {
      continue;
    }
    if (variable.empty() || variable.find('/') != std::string::npos) {
      inside += fmt::format("    # in the file, of a layer inside: {} {}\n", printable(variable), text_of(weight.shape));
    } else {
      own += fmt::format("{}{}: {{shape: [{}]}}", own.empty() ? "" : ", ", printable(variable), fmt::join(weight.shape, ", "));
    }
  }
  if (!own.empty()) text += fmt::format("    weights: {{{}}}\n", own);
  text += inside;
  text += "    layers: []    # what the class computes: {name: ..., type: ..., inputs: [x]}, ...\n";
  text += fmt::format("restore:\n  custom_objects: {{{}: {}}}", flow(Value(registered_name.empty() ? class_name : registered_name)), printable(class_name));
  return text;
}

}  // namespace lockstep
