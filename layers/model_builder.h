#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// The model that a job's `model:` section describes, its layers made and wired, its weights not yet: they come with the first trace.
///   name, dtype_policy
///   inputs: [{name, shape, dtype}]         shape of one row; null for an unknown axis
///   layers: list of
///     {name, type, ...config, inputs, borrow}    inputs: names of layers or inputs, "tower:1" for a layer's second output; the layer before by default
///     {name, use: LAYER, inputs}                 the same layer again, weights shared
///     {name, layers: [...], inputs, outputs}     a model inside; inputs: outer names, or {name: inside, from: outer, shape, dtype}; type: Sequential too
///   outputs: [layer, ...] or {key: layer, ...}   the last layer by default
/// Throws one Error with every problem found, each at its place: Y09..Y17 keys and values, Y29 names used twice, Y30 unknown types, Y31 inputs and outputs
/// that lead nowhere, cycles, Y35 parameters of custom types, Y36 borrowing. Shapes are known when the model is traced (Model::call: Y32).
std::unique_ptr<Model> build_model(const Value& section, const LayerRegistry& registry);

/// A `layers:` list with the names of what comes in: the body of a model, and of a custom type.
struct GraphSection {
  const Value* layers = nullptr;
  const Value* outputs = nullptr;  ///< may be null: the last layer
  std::vector<Model::Input> inputs;
  std::vector<Place> input_places;  ///< as many as inputs
  size_t own_weights = 0;           ///< how many of the inputs, the last ones, are weights of a custom layer: read by name, never by default
  std::string path;                 ///< for messages: "model", "custom_layers.tower"
  Place place;
  Model::Order order = Model::Order::keras;
};
std::unique_ptr<Model> build_graph(const GraphSection& section, const LayerRegistry& registry);

/// One layer of a `layers:` list, read from {type, ...config}; `path` names it in messages.
std::unique_ptr<Layer> read_layer(const Value& entry, const LayerRegistry& registry, const std::string& path);

}  // namespace lockstep
