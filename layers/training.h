#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/trainer/row_source.h"
#include "core/trainer/traced_step.h"
#include "layers/layer.h"
#include "layers/losses/loss.h"
#include "layers/metrics/metric.h"

namespace lockstep {

/// A model as tracing sees it: a function of its inputs.
struct TracedModel {
  struct Input {
    std::string name;
    TensorType row;  ///< one row, in the dtype that the model expects
  };
  std::function<std::vector<Symbol>(LayerContext& context, std::span<const Symbol> inputs)> call;
  std::vector<Input> inputs;
  std::vector<std::string> outputs;  ///< names of what `call` gives, in order
  Value dtype_policy;                ///< null: float32
  int semantics = 3;
};

/// What training and evaluation add to a model.
struct TrainingSpec {
  struct Output {
    std::shared_ptr<const Loss> loss;  ///< null: an output without a loss
    double loss_weight = 1;
    std::vector<Value> metrics;           ///< identifiers or configs; without sample weights, as in Keras
    std::vector<Value> weighted_metrics;  ///< with them
  };
  std::vector<Output> outputs;             ///< one for each of the model's
  std::vector<RowSource::Column> columns;  ///< what the data has. An input's column may have another dtype than the model's: it is cast
  std::map<int64_t, double> class_weight;  ///< a sample's weight by its class, where there is one output; in training only
};

/// One number of the logs, and how it is read from the sums of a report.
struct LoggedNumber {
  std::string name;                      ///< as in metrics.csv; also the report's name
  std::shared_ptr<const Metric> metric;  ///< null: a loss

  /// From the report's values, summed over replicas, and over batches where the batches are an evaluation's.
  double value(std::span<const double> sums) const;
};

struct TracedTraining {
  TracedStep step;
  /// "loss" first; "<output>_loss" where several outputs have one; metrics. Those of all shapes of a model are the same.
  std::vector<LoggedNumber> numbers;
};

/// A replica's training step for a shape: forward, losses, gradients of the trainable weights, updates. Reports, f64, to be summed over replicas:
///   "loss"            this replica's share of the loss of the global batch, with regularisation (which replica 0 adds); one number
///   "<output>_loss"   its share of an output's loss, without the loss weight; where several outputs have one
///   metrics           (sum, weight)
///   "valid"           sum of |sample weight| of what counts: 0 on all replicas means that there is nothing to learn from
/// The first trace adds the model's weights to `weights`. Throws D16 for a target that the data lacks, M11 for shapes that don't fit, Y37 when no output has a loss.
TracedTraining trace_training(const TracedModel& model, const TrainingSpec& training, WeightList& weights, const StepShape& shape);

/// The same without gradients and updates, for a whole batch: losses are reported as (loss * rows, rows), so that batches may be summed, and there is no
/// "valid". Its outputs are the model's.
TracedTraining trace_evaluation(const TracedModel& model, const TrainingSpec& training, WeightList& weights, const StepShape& shape);

struct ForwardOptions {
  /// Paths of layers whose outputs are given instead of the model's: under the path, then path_1, ... The first call of a shared layer counts.
  std::vector<std::string> layers;
  /// Each output writes a liveness record when it is computed.
  bool probes = false;
  /// Inputs' columns where their dtypes differ from the model's; else empty.
  std::vector<RowSource::Column> columns;
};
/// Prediction and warm-up: inference; only outputs. Throws M14 for a layer that the model hasn't, with the nearest.
TracedStep trace_forward(const TracedModel& model, WeightList& weights, const StepShape& shape, const ForwardOptions& options = {});

}  // namespace lockstep
