#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "layers/custom/custom_layer.h"
#include "layers/keras/keras_config.h"
#include "layers/model_builder.h"
#include "layers/names/names.h"
#include "layers/shapes.h"

/// What tests of models share: sections of jobs and configs of files as JSON text, and what a trace shows.
namespace lockstep {

inline Value value_of(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    Value list = Value::list();
    for (const auto& item : json) list.push_back(value_of(item));
    return list;
  }
  if (json.is_object()) {
    Value map = Value::map();
    for (const auto& item : json.items()) map.set(item.key(), value_of(item.value()));
    return map;
  }
  return {};
}

inline Value parse(const std::string& text) { return value_of(nlohmann::ordered_json::parse(text)); }

/// A config that real Keras wrote, from tests/data/models.
inline Value stored_config(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/models/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return parse(text.str());
}

/// gamma and beta over the last axis: stands for a layer that files have and that is not built in here.
class Scaled final : public Layer {
 public:
  std::string_view type() const override { return "LayerNormalization"; }
  void fields(Fields& fields) override {
    for (const char* key : {"axis", "epsilon", "center", "scale", "rms_scaling", "beta_initializer", "gamma_initializer"}) fields.ignore(key);
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    const auto zeros = make_initializer("zeros");
    context.weight({"gamma", {inputs[0].last()}, zeros, true, nullptr, {}});
    context.weight({"beta", {inputs[0].last()}, zeros, true, nullptr, {}});
    return {inputs[0]};
  }
};

/// Takes any inputs of one shape: stands for layers that merge.
class Merged final : public Layer {
 public:
  explicit Merged(std::string type) : type_(std::move(type)) {}
  std::string_view type() const override { return type_; }
  void fields(Fields&) override {}
  std::vector<Symbol> call(LayerContext&, std::span<const Symbol> inputs) override { return {inputs[0]}; }

 private:
  std::string type_;
};

/// Built-in layers, stand-ins for those that the files of tests/data/models name and that are not, and a job's custom layers.
inline LayerRegistry test_registry(const Value& custom_layers = {}) {
  LayerRegistry registry = builtin_layers();
  if (!registry.find("LayerNormalization")) registry.add("LayerNormalization", [] { return std::make_unique<Scaled>(); });
  for (const std::string type : {"Subtract", "Maximum", "Average"}) {
    if (!registry.find(type)) registry.add(type, [type] { return std::make_unique<Merged>(type); });
  }
  add_custom_layers(registry, custom_layers);
  return registry;
}

inline std::unique_ptr<Model> model_from(const std::string& section, const std::string& custom_layers = "null") {
  return build_model(parse(section), test_registry(parse(custom_layers)));
}

/// "hidden/kernel (4, 3)" for each weight, in Keras's order.
inline std::vector<std::string> weights_of(Model& model) {
  const ModelShapes shapes = trace_shapes(model);
  std::vector<std::string> result;
  for (const WeightName& name : names_of(model, shapes.weights)) result.push_back(name.weight->variable.path + " " + text_of(name.weight->variable.type.shape));
  return result;
}

inline std::vector<std::string> layer_names(const Model& model) {
  std::vector<std::string> result;
  for (const auto& layer : model.layers) result.push_back(layer->name);
  return result;
}

inline std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> result;
  for (const Model::Output& output : model.outputs) result.push_back(output.key);
  return result;
}

/// "Y30 unknown layer ...", a line a problem; "no error" when there is none.
template <class Step>
std::string problems_of(Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    std::string text;
    for (const Problem& problem : error.problems()) text += problem.code + " " + problem.message + "\n";
    return text;
  }
  return "no error";
}

}  // namespace lockstep
