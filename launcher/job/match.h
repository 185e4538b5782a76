#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "io/model_file/stored_model.h"

namespace lockstep {

/// All the names under which files know a weight of the model.
struct WeightKeys {
  std::string path;          ///< here: "inner/dense/kernel"
  std::string layer;         ///< "inner/dense"
  std::string name;          ///< "kernel"
  TensorType type;
  std::string object_path;   ///< Keras 3: "layers/functional/layers/dense"
  int object_index = 0;
  std::string keras2_path;   ///< Keras 2's checkpoints: "layer_with_weights-0/layer_with_weights-1"
  std::string top_layer;     ///< legacy .h5: "inner"
  int legacy_index = 0;      ///< in the top layer: trainable ones first
};

/// What a job allows, `restore:` in DESIGN.md section 8.
struct MatchRules {
  std::map<std::string, std::string> rename;  ///< layer name or attribute path in the file -> layer here
  std::vector<std::string> allow_missing;     ///< patterns with * and ?, on weights here
  std::vector<std::string> allow_unused;      ///< on layers or sources in the file
  bool allow_cast = false;                    ///< integers for floats
};

/// Which tensor of the file fills which weight.
struct Match {
  struct Pair {
    size_t weight = 0;
    size_t tensor = 0;     ///< in StoredModel::tensors
    bool by_position = false;  ///< no name said so; the shapes agree
  };
  std::vector<Pair> pairs;          ///< one a weight, in the weights' order; allowed missing ones apart
  std::vector<size_t> missing;      ///< weights, allowed
  std::vector<size_t> unused;       ///< tensors, allowed
};

/// Pairs by name; by place in the model's structure where the file has no names; by position as a last resort, then checked by shape. All or nothing:
/// throws every problem at once (missing, unused, wrong shape or kind of number, one weight twice), each with its way out; when nothing matches at all,
/// "0 of K tensors matched" with the nearest names.
Match match_tensors(const StoredModel& stored, const std::vector<WeightKeys>& weights, const MatchRules& rules);

/// True when `text` fits a pattern of *, ? and other characters.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace lockstep
