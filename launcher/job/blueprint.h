#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/trainer/mirrored_state.h"
#include "io/checkpoint/checkpoint.h"
#include "io/data/data.h"
#include "io/model_file/stored_model.h"
#include "launcher/job/match.h"
#include "launcher/job/restore.h"
#include "launcher/job_file/load.h"
#include "launcher/log.h"
#include "layers/keras/keras_config.h"
#include "layers/model.h"
#include "layers/names/names.h"

namespace lockstep {

/// What a command works on: a job file, a model file, a run or a checkpoint folder. The same on every rank but for what rank 0 has open.
struct Blueprint {
  std::string target;               ///< as the user wrote it
  std::optional<LoadedJob> job;     ///< a job file, or a run folder's config.resolved.yaml
  LayerRegistry registry;           ///< built-in layers and the job's own
  std::unique_ptr<Model> model;
  WeightList weights;
  std::vector<TensorType> output_types;  ///< of the model's outputs; -1 for the batch and for open axes
  std::vector<WeightName> names;    ///< in Keras's order, which is the state's too
  std::vector<WeightKeys> keys;     ///< as names, for restoring
  int semantics = 3;
  Value compile_config;             ///< of the file: optimizer, loss, metrics; null when it has none
  std::vector<std::string> notes;

  std::string source;               ///< file that the weights come from; empty: fresh ones
  std::optional<StoredModel> stored;            ///< rank 0: that file, open
  std::optional<FoundCheckpoint> checkpoint;    ///< rank 0: where the target is a run or checkpoint folder
  std::vector<std::string> search_notes;        ///< rank 0: what the search for a checkpoint skipped, and why
};

/// What a command asks for.
struct BlueprintRequest {
  std::string target;
  std::vector<std::string> overrides;
  std::string command;       ///< for the keys that a job must have
  bool reads_weights = true; ///< false: architecture alone (summary, check)
};

/// Reads what the target says and builds its model; the first trace finds its weights. Rank 0 reads files; a failure on any rank is everyone's.
Blueprint make_blueprint(Communicator& communicator, const BlueprintRequest& request);

/// Input shapes of one row with every axis known: the model's, those of warm_up.shapes, those of `data` (may be null). Throws M30 naming the key.
std::vector<Model::Input> probe_inputs(const Blueprint& blueprint, const RowSource* data);

/// What the model takes and gives, for opening data.
DataExpectation expectation_of(const Blueprint& blueprint);

/// The state with fresh values: the same bytes on every rank. `gradients` and `updates` name its flat order; none for commands that train nothing.
MirroredState fresh_state(const Blueprint& blueprint, std::span<const std::string> gradients, std::span<const std::string> updates);

/// What the job allows a restore to do.
RestoreRules restore_rules(const Blueprint& blueprint, bool trains);

/// Fills the state from the blueprint's file or checkpoint and gives it to all ranks; every rank's hashes agree afterwards. Returns rank 0's receipt,
/// elsewhere an empty one. `optimizer` may be null.
Restored restore_state(Communicator& communicator, const Blueprint& blueprint, MirroredState& state, const RestoreRules& rules, const Optimizer* optimizer);

}  // namespace lockstep
