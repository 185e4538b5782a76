#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/losses/loss.h"
#include "layers/metrics/make_metric.h"

namespace lockstep::metrics {

static Symbol as_numbers(Symbol hits) { return ops::cast(hits, DType::f32); }

/// Share of predictions equal to their targets.
class Accuracy final : public Metric {
 public:
  Accuracy() { name = "accuracy"; }
  std::string_view type() const override { return "Accuracy"; }
  void fields(Fields&) override {}
  Symbol values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("accuracy", y_true, y_pred);
    return as_numbers(ops::equal(targets, predictions));
  }
};

/// Share of predictions on their target's side of the threshold; targets are 0 or 1.
class BinaryAccuracy final : public Metric {
 public:
  BinaryAccuracy() { name = "binary_accuracy"; }
  std::string_view type() const override { return "BinaryAccuracy"; }
  void fields(Fields& fields) override { fields.add("threshold", threshold_, "predictions above it count as 1").greater_than(0).at_most(1); }
  Symbol values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("binary_accuracy", y_true, y_pred);
    const Symbol above = ops::greater(predictions, predictions.graph().constant(predictions.dtype(), threshold_));
    return as_numbers(ops::equal(targets, ops::cast(above, targets.dtype())));
  }

 private:
  double threshold_ = 0.5;
};

/// Share of samples whose largest prediction is where the largest target is. y_pred (N, ..., classes), y_true the same.
class CategoricalAccuracy final : public Metric {
 public:
  CategoricalAccuracy() { name = "categorical_accuracy"; }
  std::string_view type() const override { return "CategoricalAccuracy"; }
  void fields(Fields&) override {}
  Symbol values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("categorical_accuracy", y_true, y_pred);
    return as_numbers(ops::equal(ops::argmax(targets), ops::argmax(predictions)));
  }
};

/// Share of samples whose largest prediction is that of the target's class. y_pred (N, ..., classes), y_true integers (N, ...) or (N, ..., 1).
class SparseCategoricalAccuracy final : public Metric {
 public:
  SparseCategoricalAccuracy() { name = "sparse_categorical_accuracy"; }
  std::string_view type() const override { return "SparseCategoricalAccuracy"; }
  void fields(Fields&) override {}
  Symbol values(Symbol y_true, Symbol y_pred) const override {
    const Shape shape = y_pred.shape();
    Symbol labels = y_true;
    if (labels.shape().size() == shape.size() && labels.last() == 1) labels = ops::squeeze(labels, -1);
    if (shape.size() < 2 || labels.shape() != Shape(shape.begin(), shape.end() - 1)) {
      throw Error("M11", "", fmt::format("sparse_categorical_accuracy needs one class number for each row of an output of shape {}, got targets of {}", text_of(shape), text_of(y_true.shape())));
    }
    return as_numbers(ops::equal(ops::cast(labels, DType::i64), ops::argmax(y_pred)));
  }
};

}  // namespace lockstep::metrics

template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::Accuracy>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::BinaryAccuracy>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::CategoricalAccuracy>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::SparseCategoricalAccuracy>();
