#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/optimizer/optimizer.h"
#include "core/trainer/row_source.h"
#include "core/value/value.h"
#include "launcher/job/blueprint.h"
#include "layers/training.h"

namespace lockstep {

/// The model as tracing sees it, with every input's axes known.
TracedModel traced_model(const Blueprint& blueprint, const RowSource* data);

/// What a job trains or evaluates a model with: losses, their weights, metrics, class weights. Where the job has no losses, those that were compiled
/// into the restored file. Throws Y-family problems: Y30 unknown names, Y37 a list of another length than the outputs.
TrainingSpec training_spec(const Blueprint& blueprint, const RowSource& data);

/// The optimizer compiled into the file that the weights come from, null when it has none. `keras_2_semantics` is which of Keras 2's two kinds a file of
/// Keras 2 means: "keras-2" or "keras-2-legacy".
std::shared_ptr<const Optimizer> compiled_optimizer(const Blueprint& blueprint, std::string_view keras_2_semantics);

/// The job's optimizer, or the one compiled into the restored file. Throws Y11 when neither has one.
std::shared_ptr<const Optimizer> job_optimizer(const Blueprint& blueprint);

/// A key that this release reads but does not carry out is an error, never ignored: Y13 for each, at its place.
void refuse_unavailable(const LoadedJob& loaded);

/// Losses as Keras's compile_config has them: one, or by output.
Value keras_losses(const Blueprint& blueprint, const TrainingSpec& spec);

/// What is legal but seldom meant: a line each, for `check` and the log.
std::vector<std::string> advice(const Blueprint& blueprint, const TrainingSpec& spec);

}  // namespace lockstep
