#pragma once

#include <memory>

#include "io/hdf5/reader.h"
#include "io/model_file/stored_model.h"

namespace lockstep {

/// Whether a file has the layout of Keras's legacy .h5: a list `layer_names` at its root or in /model_weights.
bool is_legacy_layout(const hdf5::WeightsFile& file);

/// Keras's .h5, and Keras 2's save_weights to one:
///   /                    attributes keras_version, model_config, training_config (a file of weights has none of the two)
///   /model_weights       attribute layer_names (a file of weights has it at /, and the groups below)
///   .../<layer>          attribute weight_names: paths below this group, in Keras's order
///   /optimizer_weights   attribute weight_names: the iteration, then slots in Keras's order
/// A list of names too long for one attribute is split: layer_names0, layer_names1, ... A nested model is one layer.
/// Source: files of real tf_keras 2.21 and Keras 3.15. Throws Error H09 to H34.
StoredModel read_legacy_hdf5(std::shared_ptr<const hdf5::WeightsFile> file);

/// .weights.h5, and model.weights.h5 in .keras: variables at <path of attributes>/vars/<i>; Keras 3 keeps each object's name in the attribute `name` of `vars`.
/// The optimizer's are at optimizer/vars/<i>, in its flat order: iteration, in Keras 3 the learning rate, slots. `version` is 2 or 3, 0 where nothing says so.
/// Metrics and random seeds are left out. Source: as above. Throws Error H09 to H28.
StoredModel read_object_hdf5(std::shared_ptr<const hdf5::WeightsFile> file, int version);

}  // namespace lockstep
