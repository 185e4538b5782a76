#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/losses/crossentropy.h"
#include "layers/losses/make_loss.h"

namespace lockstep::losses {

/// -sum over classes of target * log(prediction); predictions are divided by their sum and clipped, or with from_logits are logits.
/// y_pred (N, ..., classes), y_true the same -> (N, ...). Smoothing s: targets * (1 - s) + s / classes.
class CategoricalCrossentropy final : public Loss {
 public:
  CategoricalCrossentropy() { name = "categorical_crossentropy"; }
  std::string_view type() const override { return "CategoricalCrossentropy"; }
  void fields(Fields& fields) override {
    fields.add("from_logits", from_logits_, "predictions are logits, not probabilities");
    fields.add("label_smoothing", label_smoothing_, "share of each target that is spread over all classes").at_least(0).at_most(1);
    fields.add("axis", axis_, "the axis of classes");
  }
  LossValues values(Symbol y_true, Symbol y_pred) const override {
    auto [targets, predictions] = matched("categorical_crossentropy", y_true, y_pred);
    if (label_smoothing_ != 0) targets = ops::add(ops::multiply(targets, 1 - label_smoothing_), label_smoothing_ / static_cast<double>(targets.last()));
    const auto rank = static_cast<int64_t>(predictions.shape().size());
    const bool last = axis_ == -1 || axis_ == rank - 1;
    if (!last && (axis_ < -rank || axis_ >= rank)) throw Error("M11", "", fmt::format("categorical_crossentropy: axis {} is not one of the output's, which is {}", axis_, text_of(predictions.shape())));
    const Symbol behind = last ? logits_behind(predictions, "softmax") : Symbol();
    if (behind || from_logits_) {
      const Symbol logits = behind ? behind : predictions;
      if (last) return {ops::softmax_cross_entropy(logits, targets), {}};
      return {ops::negative(ops::sum(ops::multiply(targets, ops::log_softmax(logits, axis_)), {axis_})), {}};
    }
    const Symbol probabilities = ops::divide(predictions, ops::sum(predictions, {axis_}, true));
    return {ops::negative(ops::sum(ops::multiply(targets, ops::log(clipped(probabilities))), {axis_})), {}};
  }

 private:
  bool from_logits_ = false;
  double label_smoothing_ = 0;
  int64_t axis_ = -1;
};

}  // namespace lockstep::losses

template std::shared_ptr<lockstep::Loss> lockstep::make_loss<lockstep::losses::CategoricalCrossentropy>();
