#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/value/fields.h"

namespace lockstep {

/// What a loss gives before it is reduced.
struct LossValues {
  Symbol values;  ///< (rows, ...), floating: one for each sample, or for each place of a sample
  Symbol valid;   ///< bool, same shape: false where the value does not count (ignore_class); invalid: all count
};

/// How far predictions are from targets. Keras's losses, with their names, arguments and formulas.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Keras's class name: "MeanSquaredError".
  virtual std::string_view type() const = 0;
  /// The config's members; `name` and `reduction` are read by the base (see base_fields).
  virtual void fields(Fields& fields) = 0;
  /// y_pred floating (rows, ...), y_true of any dtype. Throws M11 when the shapes don't fit.
  virtual LossValues values(Symbol y_true, Symbol y_pred) const = 0;

  void base_fields(Fields& fields);

  /// One of sum_over_batch_size, mean (the same), mean_with_sample_weight, sum; "auto" is Keras 2's word for the first.
  std::string reduction = "sum_over_batch_size";
  std::string name;
};

/// From a Keras identifier ("mse", "CategoricalCrossentropy"), a job's {type: ..., ...}, or Keras's {class_name, config}. Y30 for an unknown name; Y13 for
/// the reduction "none", with which nothing can be trained.
std::shared_ptr<const Loss> make_loss(const Value& value);
/// Keras 3's serialised form.
Value to_keras(const Loss& loss);
/// Class names, in alphabetical order.
std::vector<std::string> loss_types();

/// A replica's part of a loss: the loss of the global batch is the sum of numerators over replicas, divided by `divisor`.
struct LossTerm {
  Symbol numerator;  ///< f64 scalar: this replica's weighted sum
  Symbol divisor;    ///< f64 scalar, the same on every replica
  Symbol weight;     ///< f64 scalar: this replica's sum of |sample weight| over what is valid; 0 on all: nothing to learn from
};

/// Reduces as Keras does, over the rows of all replicas. `sample_weight` may be invalid; else (rows) or as many axes as the values, of size 1 or equal.
/// `global_rows`: rows of the step, all replicas.
LossTerm reduce_weighted(const LossValues& values, Symbol sample_weight, std::string_view reduction, int64_t global_rows);

/// Keras's rule for ranks that differ by one: (N) is expanded to (N, 1) beside (N, 1), else the last axis of size 1 is dropped.
std::pair<Symbol, Symbol> to_same_rank(Symbol a, Symbol b);
/// The weight with as many axes as `values`, so that it broadcasts. Throws M11 when it can't.
Symbol aligned_weight(Symbol sample_weight, Symbol values);

/// y_true in y_pred's dtype, both of one shape by to_same_rank. Throws M11 when their shapes still differ.
std::pair<Symbol, Symbol> matched(std::string_view loss, Symbol y_true, Symbol y_pred);
/// What a sigmoid or softmax node gave y_pred from, or invalid: losses of probabilities are computed from it, as Keras does in a TensorFlow graph.
Symbol logits_behind(Symbol y_pred, std::string_view op);

}  // namespace lockstep
