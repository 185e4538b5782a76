#include "layers/shapes.h"

#include <fmt/format.h>

namespace lockstep {

namespace {

ModelShapes trace(Model& model, int semantics, int64_t rows, int64_t unknown) {
  ModelShapes result;
  Graph graph;
  LayerContext::Settings settings;
  settings.semantics = semantics;
  settings.rows = rows;
  settings.global_rows = rows;
  settings.dtype_policy = model.dtype_policy;
  settings.observe = [&](const std::string& path, std::span<const Symbol> outputs) {
    std::vector<TensorType>& types = result.calls[path].emplace_back();
    for (const Symbol& output : outputs) types.push_back(output.type());
  };
  LayerContext context(graph, result.weights, settings);
  std::vector<Symbol> inputs;
  for (const Model::Input& input : model.inputs) {
    if (input.any_shape) {
      throw Error("M23", "", fmt::format("the shape of input '{}' of model '{}' is not known; give the model in the job, with inputs: [{{name: {}, shape: [...]}}]", input.name, model.name, input.name));
    }
    Shape shape = {rows};
    for (int64_t axis : input.shape) shape.push_back(axis < 0 ? unknown : axis);
    inputs.push_back(graph.input(input.name, {input.dtype, shape}));
    result.inputs.push_back({input.dtype, shape});
  }
  for (const Symbol& output : model.call(context, inputs)) result.outputs.push_back(output.type());
  return result;
}

void mark_differences(std::vector<TensorType>& types, const std::vector<TensorType>& others) {
  for (size_t i = 0; i < types.size() && i < others.size(); ++i) {
    for (size_t axis = 0; axis < types[i].shape.size() && axis < others[i].shape.size(); ++axis) {
      if (types[i].shape[axis] != others[i].shape[axis]) types[i].shape[axis] = -1;
    }
  }
}

}  // namespace

ModelShapes trace_shapes(Model& model, int semantics) {
  // Large enough for windows of convolutions, and even, so that halving them gives no remainder.
  ModelShapes shapes = trace(model, semantics, 2, 64);
  const ModelShapes others = trace(model, semantics, 3, 96);
  mark_differences(shapes.inputs, others.inputs);
  mark_differences(shapes.outputs, others.outputs);
  for (auto& [path, calls] : shapes.calls) {
    const auto other = others.calls.find(path);
    if (other == others.calls.end()) continue;
    for (size_t i = 0; i < calls.size() && i < other->second.size(); ++i) mark_differences(calls[i], other->second[i]);
  }
  return shapes;
}

std::string text_with_none(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i] < 0 ? "None" : std::to_string(shape[i]));
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace lockstep
