#pragma once

#include <string>

#include "io/model_file/stored_model.h"

namespace lockstep {

/// A .keras archive of Keras 2 or 3: a zip of metadata.json ({keras_version, date_saved}), config.json ({module, class_name, config, registered_name, build_config,
/// compile_config}) and model.weights.h5 (see keras_hdf5.h). Source: files of real tf_keras 2.21 and Keras 3.15. Throws Error Z01 to Z18 and H01 to H28.
StoredModel read_keras_zip(const std::string& path);

/// config.json alone.
Value read_keras_zip_config(const std::string& path);

}  // namespace lockstep
