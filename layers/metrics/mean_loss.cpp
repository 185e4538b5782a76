#include <cmath>

#include "core/ops/ops.h"
#include "layers/losses/loss.h"
#include "layers/metrics/make_metric.h"

namespace lockstep::metrics {

/// The mean of a loss over samples.
class MeanLoss : public Metric {
 public:
  explicit MeanLoss(const char* loss) : loss_(std::const_pointer_cast<Loss>(make_loss(Value(loss)))) { name = loss_->name; }
  std::string_view type() const override { return loss_->type(); }
  void fields(Fields& fields) override { loss_->fields(fields); }
  Symbol values(Symbol y_true, Symbol y_pred) const override { return loss_->values(y_true, y_pred).values; }

  /// A target's places that do not count weigh nothing.
  Symbol state(Symbol y_true, Symbol y_pred, Symbol sample_weight) const override {
    const LossValues values = loss_->values(y_true, y_pred);
    if (!values.valid) return Metric::state(y_true, y_pred, sample_weight);
    Symbol weight = ops::cast(values.valid, DType::f64);
    if (sample_weight) weight = ops::multiply(weight, aligned_weight(ops::cast(sample_weight, DType::f64), values.values));
    return Metric::state(y_true, y_pred, weight);
  }

 private:
  std::shared_ptr<Loss> loss_;  // not shared: made here
};

class BinaryCrossentropy final : public MeanLoss {
 public:
  BinaryCrossentropy() : MeanLoss("BinaryCrossentropy") {}
};

class CategoricalCrossentropy final : public MeanLoss {
 public:
  CategoricalCrossentropy() : MeanLoss("CategoricalCrossentropy") {}
};

class MeanAbsoluteError final : public MeanLoss {
 public:
  MeanAbsoluteError() : MeanLoss("MeanAbsoluteError") {}
};

class MeanSquaredError final : public MeanLoss {
 public:
  MeanSquaredError() : MeanLoss("MeanSquaredError") {}
};

class SparseCategoricalCrossentropy final : public MeanLoss {
 public:
  SparseCategoricalCrossentropy() : MeanLoss("SparseCategoricalCrossentropy") {}
};

/// The root of the mean of squared errors.
class RootMeanSquaredError final : public Metric {
 public:
  RootMeanSquaredError() { name = "root_mean_squared_error"; }
  std::string_view type() const override { return "RootMeanSquaredError"; }
  void fields(Fields&) override {}
  Symbol values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("root_mean_squared_error", y_true, y_pred);
    return ops::square(ops::subtract(targets, predictions));
  }
  double result(std::span<const double> state) const override { return std::sqrt(Metric::result(state)); }
};

}  // namespace lockstep::metrics

template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::BinaryCrossentropy>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::CategoricalCrossentropy>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::MeanAbsoluteError>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::MeanSquaredError>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::RootMeanSquaredError>();
template std::shared_ptr<lockstep::Metric> lockstep::make_metric<lockstep::metrics::SparseCategoricalCrossentropy>();
