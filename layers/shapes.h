#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// What a trace of a model shows without data: the shapes of its tensors and its weights.
struct ModelShapes {
  /// With the batch in front; -1 for an axis that follows the batch or an unknown axis of an input.
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  /// Outputs of each call of a layer, by the layer's path; the calls in the order of the model's.
  std::map<std::string, std::vector<std::vector<TensorType>>> calls;
  WeightList weights;
};

/// Traces the outermost model twice, for two sizes of every unknown axis. `semantics`: Keras 2 or 3. Throws what Model::call throws, and M23 when an input's
/// shape is not known at all.
ModelShapes trace_shapes(Model& model, int semantics = 3);

/// "(None, 28, 28, 1)".
std::string text_with_none(const Shape& shape);

}  // namespace lockstep
