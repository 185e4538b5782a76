#pragma once

#include <string>

#include "io/model_file/stored_model.h"

namespace lockstep::tensorflow {

/// A SavedModel folder:
///   saved_model.pb        the objects (layers, variables, functions) and how they hang together; TensorFlow's graph in it isn't read
///   variables/variables   a TensorBundle with the object graph, whose nodes are saved_model.pb's
///   keras_metadata.pb     tf_keras: JSON for each layer: its name, class and config. Before TensorFlow 2.5 the same JSON is in saved_model.pb; Keras 3 has none
/// Sources: TensorFlow, core/protobuf/saved_object_graph.proto; tf_keras, protobuf/saved_metadata.proto.
/// Throws Error S01 to S20.
StoredModel read_saved_model(const std::string& folder);

}  // namespace lockstep::tensorflow
