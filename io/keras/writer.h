#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/value/value.h"

namespace lockstep {

/// The version whose dialect is written.
constexpr std::string_view written_keras_version = "3.15.1";

/// An object that Keras saves, with its variables: a layer, the optimizer, or the model itself.
struct KerasObject {
  std::string path;               ///< of attributes: "layers/dense_1", "layers/functional/layers/dense", "optimizer"; empty for the model
  std::string name;               ///< "hidden", "adam": the attribute `name` of its group `vars`; empty: none, as in Keras 2
  std::vector<Tensor> variables;  ///< in Keras's order, trainable first; none for an object without weights, which has its group all the same
};

/// What a .keras file holds.
struct KerasArchive {
  Value config;  ///< all of config.json: {module, class_name, config, ..., compile_config}
  std::string keras_version{written_keras_version};
  std::vector<KerasObject> objects;  ///< in the order in which they are written; paths are unique
};

/// A file in memory, and where the values of each variable start in it, in bytes: `offsets[i][j]` is variable j of object i. Values without elements: 0.
struct KerasFile {
  std::vector<std::byte> bytes;
  std::vector<std::vector<uint64_t>> offsets;
};

/// A .keras file of Keras 3: a zip of metadata.json, config.json and model.weights.h5. Its bytes are a function of the archive: `date_saved` is fixed.
KerasFile write_keras(const KerasArchive& archive);

/// model.weights.h5 alone, which is also what Keras calls `.weights.h5`: variables at `<path>/vars/<i>`. `name` is for messages.
KerasFile write_keras_weights(const std::string& name, const std::vector<KerasObject>& objects);

}  // namespace lockstep
