#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/model_file/stored_model.h"
#include "io/tensorflow/bundle.h"
#include "io/tensorflow/object_graph.h"

namespace lockstep::tensorflow {

/// What a SavedModel knows of an object beyond its attributes.
struct KnownObject {
  enum class Kind { model,
                    layer,
                    other };
  Kind kind = Kind::other;
  std::string name;       ///< Keras's name: "hidden"
  bool trainable = true;  ///< of a layer with all that it holds; of a variable
};
/// By node. Empty for checkpoints, which know attributes only.
using KnownObjects = std::map<size_t, KnownObject>;

/// Lists the model's weights and the optimizer's state that an object graph leads to: fills tensors, optimizer, notes and read of `model`.
/// `optimizer_class_name` is the config's, empty where there is none.
void add_graph(StoredModel& model, std::shared_ptr<const Bundle> bundle, const ObjectGraph& graph, const KnownObjects& known, const std::string& optimizer_class_name);

/// The type of a bundle's tensor of numbers.
StoredTensor stored_tensor(const std::string& key, const BundleTensor& tensor);

/// Sets `read` of a model whose tensors' sources are the bundle's keys.
void read_from(StoredModel& model, std::shared_ptr<const Bundle> bundle);

}  // namespace lockstep::tensorflow
