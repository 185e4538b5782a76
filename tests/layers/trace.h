#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/random/philox.h"
#include "layers/layer.h"
#include "layers/model.h"
#include "tests/core/ops/evaluate.h"

/// What tests of layers share: a layer from its config, called once in a graph of its own.
namespace lockstep {

inline std::unique_ptr<Layer> layer_from(const std::string& type, Value config, const std::string& name = "layer") {
  const LayerRegistry registry = builtin_layers();
  std::unique_ptr<Layer> layer = (*registry.find(type))();
  Fields fields;
  layer->base_fields(fields);
  layer->fields(fields);
  if (!config.find("name")) config.set("name", name);
  read_fields(config, fields, name);
  return layer;
}

inline Value written(Layer& layer) {
  Fields fields;
  layer.base_fields(fields);
  layer.fields(fields);
  return write_fields(fields);
}

struct TracedLayer {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  WeightList weights;
  std::vector<Symbol> inputs;
  std::vector<Symbol> outputs;
  std::unique_ptr<LayerContext> context;

  /// Inputs are named x0, x1, ...
  TracedLayer(Layer& layer, const std::vector<TensorType>& types, LayerContext::Settings settings = {}) {
    settings.rows = types[0].shape.empty() ? 0 : types[0].shape[0];
    if (settings.global_rows == 0) settings.global_rows = settings.rows;
    context = std::make_unique<LayerContext>(*graph, weights, settings);
    for (size_t i = 0; i < types.size(); ++i) inputs.push_back(graph->input("x" + std::to_string(i), types[i]));
    outputs = context->call(layer, inputs);
  }
  /// Every weight at its initial value.
  Evaluation evaluation() const {
    Evaluation evaluation;
    for (const Weight& weight : weights.all()) evaluation.feeds[weight.variable.path] = weight.initializer->make(weight.variable.type, 7, weight.variable.path);
    return evaluation;
  }
};

inline Tensor f64(Shape shape, std::vector<double> values) { return Tensor::of<double>(DType::f64, std::move(shape), values); }
inline Tensor f32(Shape shape, std::vector<float> values) { return Tensor::of<float>(DType::f32, std::move(shape), values); }
inline Tensor i64(Shape shape, std::vector<int64_t> values) { return Tensor::of<int64_t>(DType::i64, std::move(shape), values); }

inline std::vector<double> numbers(const Tensor& tensor) {
  const Tensor wide = cast(tensor, DType::f64);
  return {wide.as<double>().begin(), wide.as<double>().end()};
}

/// In [low, high), by name and place.
inline Tensor uniform(const TensorType& type, double low, double high, const std::string& name) {
  Tensor wide({DType::f64, type.shape});
  uint64_t element = 0;
  for (double& x : wide.as<double>()) x = low + (high - low) * uniform_f64_at({11, stream_of(name)}, 0, element++);
  return cast(wide, type.dtype);
}

/// The text of what `step` throws; empty when it throws nothing.
template <class Step>
std::string thrown(Step step) {
  try {
    step();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep
