#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/value/value.h"

namespace lockstep {

/// How a file names its weights, hence how they are matched with a model's.
enum class NamingRule {
  layer_order,  ///< legacy .h5: a group a layer, weights of a layer in Keras's order
  object_path,  ///< .weights.h5 and .keras: the path of attributes, weights numbered (`layers/dense_1/vars/0`)
  names,        ///< TensorFlow: each variable has a full name (`hidden/kernel`), and perhaps an object path
};

/// One tensor of a file, not yet read.
/// Under NamingRule::names `layer` + "/" + `variable` is the variable's full name, which in Keras 3 may begin with the model's ("retrieval/hidden/kernel");
/// where the file doesn't tell where the layer's name ends, it ends at the last '/'. Under object_path `layer` has the names of the objects on the way
/// ("mid/dense", "lstm/lstm_cell"), empty in Keras 2, and `variable` is empty. Under layer_order a nested model is one layer and `variable` a path below it.
struct StoredTensor {
  std::string source;             ///< where it is, unique in the file: "/model_weights/hidden/hidden/kernel:0"
  TensorType type;                ///< as stored; bfloat16 in opaque bytes is bf16
  std::string layer;              ///< the owning layer's name as the file knows it ("hidden", "inner/dense"); empty when it doesn't
  std::string variable;           ///< "kernel", "lstm_cell/kernel"; empty when the file doesn't know
  std::string object_path;        ///< "layers/dense_1", "dense_layer", "layer_with_weights-0"; empty in legacy files
  int index = 0;                  ///< its number in the owner, in file order
  std::optional<bool> trainable;  ///< where the file says
};

/// A slot or counter of an optimizer in a file, in Keras's flat order.
struct StoredOptimizer {
  std::string class_name;               ///< "Adam"; empty when the file doesn't know
  bool legacy = false;                  ///< tf.keras.optimizers.legacy or Keras <= 2.10
  std::optional<int64_t> iterations;    ///< the raw count of steps
  std::optional<double> learning_rate;  ///< where the file keeps it as a variable, as Keras 3 does; no slot
  /// Each slot: its Keras 3 name ("momentums", "velocities", "velocity_hats", ...; empty when only the order is known), and the tensor;
  /// `layer`, `variable`, `object_path` and `index` of the tensor name the weight that it belongs to where the file says.
  struct Slot {
    std::string name;
    StoredTensor tensor;
  };
  std::vector<Slot> slots;
};

/// A file of Keras or TensorFlow, opened and checked, its tensors listed, none loaded.
struct StoredModel {
  std::string file;       ///< as the user wrote it
  std::string format;     ///< "keras-h5", "keras-zip", "weights-h5", "legacy-weights-h5", "saved-model", "tf-checkpoint"
  std::string framework;  ///< "keras" or "tf_keras"; "tensorflow" for name-based checkpoints
  std::string version;    ///< "3.15.1"; empty when the file doesn't say
  int semantics = 3;      ///< 2 or 3: whose defaults and formulas hold
  NamingRule rule = NamingRule::names;
  std::optional<Value> architecture;    ///< Keras's config: {class_name, config, ...}; places point into the file
  std::optional<Value> compile_config;  ///< {optimizer, loss, metrics, ...}: training_config of Keras 2 has the same members
  std::vector<StoredTensor> tensors;
  std::optional<StoredOptimizer> optimizer;
  std::vector<std::string> notes;  ///< one line each, for the log and the receipt
  /// Classes that the file names and that are not Keras's own: for SavedModels that carry no config ({class_name, config, path}).
  std::vector<Value> custom_objects;
  /// Reads one tensor's bytes as stored, in the machine's byte order. Checked against checksums where the format has them. Throws Error with place.
  std::function<void(const StoredTensor&, std::span<std::byte>)> read;
};

/// Opens a model file, a SavedModel folder, a checkpoint prefix; told by content, not by name. Throws Error (families H, Z, S) naming file and place.
StoredModel open_model_file(const std::string& path);

/// The config inside a Keras `model.to_json()` file, a .keras, .h5 or SavedModel: for `model: {from: FILE}`. Throws when there is none.
Value read_architecture(const std::string& path);

}  // namespace lockstep
