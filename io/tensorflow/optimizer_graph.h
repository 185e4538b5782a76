#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/model_file/stored_model.h"
#include "io/tensorflow/bundle.h"
#include "io/tensorflow/object_graph.h"

namespace lockstep::tensorflow {

/// Nodes that count iterations: Keras 3's and tf_keras's optimizers, legacy ones, those inside a LossScaleOptimizer.
std::set<size_t> optimizers_of(const ObjectGraph& graph);

/// The model's weights, for slots to belong to.
struct GraphWeights {
  const std::vector<StoredTensor>& tensors;
  const std::vector<std::string>& full_names;
  const std::map<size_t, size_t>& tensor_of_node;
};

/// The state of one optimizer. From 2.11 on and in Keras 3 the list `_variables` is Keras's flat order and lists like `_momentums` say what each is, in the order
/// of the trainable weights; a legacy optimizer has slot variables, each with its weight's node. `trainable` is the SavedModel's list of those weights, or null.
StoredOptimizer read_optimizer(const Bundle& bundle, const ObjectGraph& graph, size_t optimizer, const ObjectGraph::Node* trainable, const GraphWeights& weights,
                               const std::string& class_name);

}  // namespace lockstep::tensorflow
