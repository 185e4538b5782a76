#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/value/fields.h"

namespace lockstep {

/// A number that tells how good predictions are. It is computed from a state that is added up: over the samples of a batch, over replicas, over steps.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Keras's class name: "BinaryAccuracy".
  virtual std::string_view type() const = 0;
  /// The config's members; `name` is read by the base (see base_fields).
  virtual void fields(Fields& fields) = 0;
  /// One value a sample, or for each place of a sample: (rows, ...), floating. Throws M11 when the shapes don't fit.
  virtual Symbol values(Symbol y_true, Symbol y_pred) const = 0;
  /// f64 vector: (sum of values, sum of weights), a sample's value being the mean over its places. `sample_weight` may be invalid.
  virtual Symbol state(Symbol y_true, Symbol y_pred, Symbol sample_weight) const;
  /// From added states; 0 when nothing was added.
  virtual double result(std::span<const double> state) const;

  void base_fields(Fields& fields);

  std::string name;
};

/// From a Keras identifier, a job's {type: ..., ...}, or Keras's {class_name, config}. "accuracy" and "acc" become the binary, sparse categorical or
/// categorical accuracy by the shapes of target and output, as in Keras; a metric given by name is called by it. Y30 for an unknown name.
std::shared_ptr<const Metric> make_metric(const Value& value, const Shape& y_true, const Shape& y_pred);
/// Keras 3's serialised form.
Value to_keras(const Metric& metric);
/// Class names, in alphabetical order.
std::vector<std::string> metric_types();

}  // namespace lockstep
