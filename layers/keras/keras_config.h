#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// `restore.custom_objects`: what stands for the classes and functions that a file names and that are not Keras's.
class CustomObjects {
 public:
  CustomObjects() = default;
  /// A mapping from "my_package>Tower", or the bare class name, to a layer type of the job ("tower"), to `model` (the job's own model), or to an activation
  /// or initializer ("gelu", {type: gelu, approximate: true}). Null: none. Y12 for anything else.
  explicit CustomObjects(Value mapping);

  /// By the registered name ("my_package>Tower"), then the bare class name; null when the job maps neither.
  const Value* find(std::string_view registered_name, std::string_view class_name) const;
  const Value& mapping() const { return mapping_; }

 private:
  Value mapping_;
};

/// A weight of a file that belongs to a layer, for the stubs of unknown classes.
struct FileWeight {
  std::string layer;     ///< the owning layer's name as the file knows it: "inner/dense"
  std::string variable;  ///< "kernel", "hidden/kernel"
  Shape shape;
};

/// What reading a file's architecture needs to know.
struct KerasReading {
  const LayerRegistry& registry;
  CustomObjects custom_objects;
  /// Makes the model that the job describes, for classes mapped to `model`; may be null.
  std::function<std::unique_ptr<Model>()> own_model;
  /// Whether a bare class name is one of Keras's; may be null: then only a file that tells modules (Keras 3) tells Keras's from a user's.
  std::function<bool(std::string_view)> is_keras_class;
  std::vector<FileWeight> weights;
};

/// The model that a file describes, and what the receipt says about it.
struct KerasModel {
  std::unique_ptr<Model> model;
  std::vector<std::string> notes;
};

/// A model from Keras's config {class_name, config, ...}: Sequential and functional models of Keras 2 and 3, nested and shared, with any inputs and outputs.
/// The structure of the removed multi_gpu_model is looked through. `config`'s places name the file. Throws one Error with every problem:
///   M20  a class that is neither Keras's nor mapped: its name, where it sits, a stub to paste
///   M21  Python code (Lambda): named, never run
///   M22  a class or an option of Keras that is not built in here, with the nearest that is
///   M23  a config that is malformed or contradicts itself
///   M24  a class's config keys that don't fit the parameters of the type that stands for it
KerasModel build_from_keras(const Value& config, const KerasReading& reading);

/// The config.json of a .keras file that Keras 3's load_model opens: {module, class_name, config, registered_name, build_config, compile_config}.
/// `compile_config` null: not compiled. Traces the model for the shapes.
Value to_keras_config(Model& model, const Value& compile_config);

/// The `custom_layers:` section to paste for a class that is not known: its config keys as parameters, its weights; the graph is left to the user.
/// `layer`: path of one layer of this class in the file, as in FileWeight.
std::string custom_layer_stub(const std::string& class_name, const std::string& registered_name, const Value& config, const std::string& layer,
                              const std::vector<FileWeight>& weights);

}  // namespace lockstep
