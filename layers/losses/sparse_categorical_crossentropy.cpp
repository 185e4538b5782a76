#include <optional>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/losses/crossentropy.h"
#include "layers/losses/make_loss.h"

namespace lockstep::losses {

/// -log(prediction of the target's class); predictions are clipped and divided by their sum, or with from_logits are logits.
/// y_pred (N, ..., classes), y_true integers (N, ...) or (N, ..., 1) -> (N, ...). Targets equal to ignore_class do not count.
class SparseCategoricalCrossentropy final : public Loss {
 public:
  SparseCategoricalCrossentropy() { name = "sparse_categorical_crossentropy"; }
  std::string_view type() const override { return "SparseCategoricalCrossentropy"; }
  void fields(Fields& fields) override {
    fields.add("from_logits", from_logits_, "predictions are logits, not probabilities");
    fields.add("ignore_class", ignore_class_, "a class that does not count; null: none");
    fields.add("axis", axis_, "the axis of classes: the last");
  }
  LossValues values(Symbol y_true, Symbol y_pred) const override {
    const Shape shape = y_pred.shape();
    Symbol labels = y_true;
    if (labels.shape().size() == shape.size() && labels.last() == 1) labels = ops::squeeze(labels, -1);
    if (shape.size() < 2 || labels.shape() != Shape(shape.begin(), shape.end() - 1)) {
      const bool one_hot = y_true.shape() == shape;
      throw Error("M11", "", fmt::format("sparse_categorical_crossentropy needs one class number for each row of an output of shape {}, got targets of {}{}", text_of(shape), text_of(y_true.shape()), one_hot ? "; for one-hot targets use categorical_crossentropy" : ""));
    }
    if (axis_ != -1 && axis_ != static_cast<int64_t>(shape.size()) - 1) throw Error("M11", "", fmt::format("sparse_categorical_crossentropy: classes must be on the last axis, axis is {}", axis_));
    if (labels.dtype() != DType::i32 && labels.dtype() != DType::i64) labels = ops::cast(labels, DType::i64);

    LossValues result;
    // Keras looks for the logits behind a softmax only where it has not touched the predictions.
    const Symbol behind = ignore_class_ ? Symbol() : logits_behind(y_pred, "softmax");
    if (ignore_class_) {
      result.valid = ops::not_equal(labels, labels.graph().constant(labels.dtype(), static_cast<double>(*ignore_class_)));
      labels = ops::where(result.valid, labels, labels.graph().constant(labels.dtype(), 0));
    }
    const Symbol logits = behind ? behind : from_logits_ ? y_pred
                                                         : ops::log(clipped(y_pred));
    result.values = ops::sparse_softmax_cross_entropy(logits, labels);
    if (result.valid) result.values = ops::where(result.valid, result.values, result.values.graph().constant(result.values.dtype(), 0));
    return result;
  }

 private:
  bool from_logits_ = false;
  std::optional<int64_t> ignore_class_;
  int64_t axis_ = -1;
};

}  // namespace lockstep::losses

template std::shared_ptr<lockstep::Loss> lockstep::make_loss<lockstep::losses::SparseCategoricalCrossentropy>();
