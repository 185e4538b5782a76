#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/model_file/stored_model.h"

namespace lockstep {

/// Longest JSON of a model that is read, in bytes.
constexpr size_t max_config_bytes = size_t{8} << 20;

/// Sets version, semantics and framework from Keras's own version ("2.21.0", "3.15.1"), which stands at `place`. A newer minor version is noted.
/// Throws `code` for Keras 1, a newer major one, and text that is no version.
void set_keras_version(StoredModel& model, const std::string& version, std::string_view code, const std::string& place);

/// Keras 2's training_config as Keras 3's compile_config: the optimizer under `optimizer`, its class without a package.
Value compile_config_of(Value training_config);

/// {"class_name": "__tuple__", "items": [...]} as a plain list, in the whole tree.
Value without_tuples(const Value& value);

/// Every class in a model's layers, nested ones too, that isn't Keras's: {class_name, config, path}, with its `module` where the file names one; the model's own
/// too, with an empty path.
std::vector<Value> custom_classes_of(const Value& architecture);

}  // namespace lockstep
