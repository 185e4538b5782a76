#include "core/ops/ops.h"
#include "layers/losses/make_loss.h"

namespace lockstep::losses {

/// The mean along the last axis of (target - prediction)^2. y_pred (N, ..., D), y_true the same -> (N, ...).
class MeanSquaredError final : public Loss {
 public:
  MeanSquaredError() { name = "mean_squared_error"; }
  std::string_view type() const override { return "MeanSquaredError"; }
  void fields(Fields&) override {}
  LossValues values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("mean_squared_error", y_true, y_pred);
    const Symbol squares = ops::square(ops::subtract(targets, predictions));
    return {squares.shape().size() > 1 ? ops::mean(squares, {-1}) : squares, {}};
  }
};

/// The mean along the last axis of |target - prediction|. y_pred (N, ..., D), y_true the same -> (N, ...).
class MeanAbsoluteError final : public Loss {
 public:
  MeanAbsoluteError() { name = "mean_absolute_error"; }
  std::string_view type() const override { return "MeanAbsoluteError"; }
  void fields(Fields&) override {}
  LossValues values(Symbol y_true, Symbol y_pred) const override {
    const auto [targets, predictions] = matched("mean_absolute_error", y_true, y_pred);
    const Symbol distances = ops::absolute(ops::subtract(targets, predictions));
    return {distances.shape().size() > 1 ? ops::mean(distances, {-1}) : distances, {}};
  }
};

}  // namespace lockstep::losses

template std::shared_ptr<lockstep::Loss> lockstep::make_loss<lockstep::losses::MeanAbsoluteError>();
template std::shared_ptr<lockstep::Loss> lockstep::make_loss<lockstep::losses::MeanSquaredError>();
