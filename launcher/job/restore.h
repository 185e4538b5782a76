#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/optimizer/optimizer.h"
#include "core/trainer/mirrored_state.h"
#include "core/value/value.h"
#include "io/model_file/stored_model.h"
#include "launcher/job/match.h"

namespace lockstep {

/// What to do with an optimizer's state in the file: `restore.optimizer`.
enum class OptimizerRestore { automatic, keep, reset };

struct RestoreRules {
  MatchRules match;
  bool allow_not_finite = false;  ///< true for commands that train nothing, which warn instead
  OptimizerRestore optimizer = OptimizerRestore::automatic;
};

/// An optimizer's state from a file, in the state's order of variables.
struct RestoredOptimizer {
  int64_t iterations = 0;                   ///< the raw count
  std::vector<std::vector<Tensor>> slots;   ///< [slot][variable]; not valid where the file has none
};

/// What a restore did: rank 0's part of the receipt.
struct Restored {
  std::optional<RestoredOptimizer> optimizer;
  Value receipt = Value::map();        ///< file, format, framework, semantics, rule, tensors, missing, unused, optimizer, notes
  std::vector<std::string> notes;      ///< for the log
  std::vector<std::string> warnings;
};

/// Fills the state with the file's tensors, all or nothing: matched (match_tensors), converted, checked to be finite. Variables that are allowed to be
/// missing keep their values. `keys` are the state's variables, in its order. With an optimizer, its slots too, as `rules.optimizer` says.
Restored restore_from_file(const StoredModel& stored, const std::vector<WeightKeys>& keys, const RestoreRules& rules, MirroredState& state, const Optimizer* optimizer);

}  // namespace lockstep
