#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// All the names under which Keras and TensorFlow know one weight of a model.
struct WeightName {
  const Weight* weight = nullptr;
  std::vector<std::string> components;  ///< layers' names from the outside in, then the variable's levels: {"mid", "dense", "kernel"}
  std::string extract_path;             ///< the components as `extract` writes them, % and / inside one as %25 and %2F: "mid/dense/kernel"
  std::string object_path;              ///< .keras and .weights.h5: "layers/functional/layers/dense"; empty for weights of the model itself
  int object_index = 0;                 ///< vars/<i> below object_path
  std::string keras2_object_path;       ///< Keras 2's TensorFlow checkpoints: "layer_with_weights-1/layer_with_weights-0"; then the attribute
  std::string keras3_path;              ///< Keras 3's variable.path: "retrieval/hidden/kernel" in a Sequential (which one that was loaded from a file drops:
                                        ///< "hidden/kernel"), "hidden/kernel" in a functional model
  std::string keras2_path;              ///< Keras 2's variable name without ":0": "hidden/kernel"
  std::string top_layer;                ///< legacy .h5: the outermost layer's name, whose group holds the weight
  int legacy_index = 0;                 ///< legacy .h5: its number there, all trainable ones first, then the others
};

/// One name a weight, in the order of Keras's model.weights. `model` is the outermost one. Throws X05 when a weight belongs to no layer of the model.
std::vector<WeightName> names_of(const Model& model, const WeightList& weights);

/// An object that has a group with `vars` in .keras and .weights.h5, with weights or without.
struct ObjectGroup {
  std::string path;  ///< "layers/dense_1"; empty for the model
  std::string name;  ///< the layer's, Keras 3's attribute of `vars`
};

/// Every group of the model in Keras's order, Input layers too. Layers that a built-in layer keeps inside and that have weights come with names_of.
std::vector<ObjectGroup> object_groups(const Model& model);

/// Names of the outermost layers in Keras's order, with Input layers: `layer_names` of a legacy .h5.
std::vector<std::string> top_layers(const Model& model);

/// The Python attribute under which a layer of a custom type is kept in the classes that we write: an identifier, with "_" behind it where Keras's Layer
/// has an attribute of that name.
std::string attribute_name(std::string_view name);

/// The class name under which a layer is written to Keras 3's files: Keras's own, the user's (restore.custom_objects), or the job's type. A layer that
/// borrows is no layer of Keras: "BorrowingDense".
std::string class_name_of(const Layer& layer);
/// "my_package>Tower"; empty for Keras's own.
std::string registered_name_of(const Layer& layer);

}  // namespace lockstep
