#pragma once

#include <string>
#include <vector>

#include "core/optimizer/optimizer.h"
#include "core/tensor/tensor.h"
#include "io/keras/writer.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/run_state.h"

namespace lockstep {

/// The optimizer's part of a .keras file.
struct ArchiveOptimizer {
  const Optimizer* optimizer = nullptr;
  int64_t iterations = 0;
  std::vector<std::vector<Tensor>> slots;  ///< [slot][variable in state order]
};

/// What a .keras file of this model holds: config.json, each object with its variables, the optimizer where Keras keeps it. `values` in state order.
/// `config` is made once (to_keras_config), since it never changes.
KerasArchive archive_of(const Blueprint& blueprint, const Value& config, const std::vector<Tensor>& values, const ArchiveOptimizer& optimizer);

/// A checkpoint of a run: model.keras with the record of each tensor, state.json, what the bits depend on.
CheckpointContent checkpoint_content(const Blueprint& blueprint, const Value& config, const std::vector<Tensor>& values, const ArchiveOptimizer& optimizer, RunState state);

/// Keras's compile_config of a job: {optimizer, loss, loss_weights, metrics, ...}.
Value compile_config_of(const Optimizer& optimizer, const Value& losses);

}  // namespace lockstep
