#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/losses/crossentropy.h"
#include "layers/losses/make_loss.h"

namespace lockstep::losses {

/// The mean along an axis of -target * log(p) - (1 - target) * log(1 - p); p is clipped, or with from_logits the sigmoid of the prediction.
/// y_pred (N, ..., D), y_true the same -> (N, ...). Smoothing s: targets * (1 - s) + s / 2.
class BinaryCrossentropy final : public Loss {
 public:
  BinaryCrossentropy() { name = "binary_crossentropy"; }
  std::string_view type() const override { return "BinaryCrossentropy"; }
  void fields(Fields& fields) override {
    fields.add("from_logits", from_logits_, "predictions are logits, not probabilities");
    fields.add("label_smoothing", label_smoothing_, "share of each target that is moved to one half").at_least(0).at_most(1);
    fields.add("axis", axis_, "the axis of the mean");
  }
  LossValues values(Symbol y_true, Symbol y_pred) const override {
    auto [targets, predictions] = matched("binary_crossentropy", y_true, y_pred);
    if (label_smoothing_ != 0) targets = ops::add(ops::multiply(targets, 1 - label_smoothing_), 0.5 * label_smoothing_);
    const auto rank = static_cast<int64_t>(predictions.shape().size());
    if (axis_ < -rank || axis_ >= rank || rank < 2 || axis_ == 0 || axis_ == -rank) {
      throw Error("M11", "", fmt::format("binary_crossentropy takes the mean along axis {}, which must be an axis of the output, {}, after its rows", axis_, text_of(predictions.shape())));
    }
    const Symbol behind = logits_behind(predictions, "sigmoid");
    if (behind || from_logits_) return {ops::mean(ops::sigmoid_cross_entropy(behind ? behind : predictions, targets), {axis_}), {}};
    const Symbol p = clipped(predictions);
    const Symbol one = p.graph().constant(p.dtype(), 1);
    const Symbol hit = ops::multiply(targets, ops::log(p));
    const Symbol miss = ops::multiply(ops::subtract(one, targets), ops::log(ops::subtract(one, p)));
    return {ops::mean(ops::negative(ops::add(hit, miss)), {axis_}), {}};
  }

 private:
  bool from_logits_ = false;
  double label_smoothing_ = 0;
  int64_t axis_ = -1;
};

}  // namespace lockstep::losses

template std::shared_ptr<lockstep::Loss> lockstep::make_loss<lockstep::losses::BinaryCrossentropy>();
