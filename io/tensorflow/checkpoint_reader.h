#pragma once

#include <memory>
#include <string>

#include "io/model_file/stored_model.h"
#include "io/tensorflow/bundle.h"

namespace lockstep::tensorflow {

/// A checkpoint by its prefix: "ckpt-7" for ckpt-7.index and ckpt-7.data-00000-of-00001. One with an object graph (tf.train.Checkpoint, save_weights) names each
/// variable by the graph; one without has variables' names as keys (TensorFlow 1). Throws Error S02 to S19.
StoredModel read_checkpoint(const std::string& prefix);

/// The tensors of a name-based checkpoint, slots of TensorFlow 1's optimizers apart: fills `model`.
void add_named_variables(StoredModel& model, std::shared_ptr<const Bundle> bundle);

}  // namespace lockstep::tensorflow
