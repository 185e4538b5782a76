#include <optional>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "core/random/philox.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// In training y = x / (1 - rate) where a draw keeps it, else 0; otherwise y = x. Draws belong to (seed, step, layer path, call, row of the global
/// batch, element). Axes of size 1 in noise_shape share a draw; null there means the input's size.
class Dropout final : public Layer {
 public:
  std::string_view type() const override { return "Dropout"; }
  void fields(Fields& fields) override {
    fields.add("rate", rate_, "share of elements that become 0").require().at_least(0).at_most(1);
    fields.add("seed", seed_, "draws of its own; null: the job's seed alone");
    fields.add("noise_shape", noise_shape_, "shape of the draws; null: the input's");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Symbol x = context.computed(inputs[0]);
    const uint64_t stream = context.random_stream();
    if (!context.training() || rate_ == 0) return {x};
    if (rate_ == 1) return {ops::multiply(x, 0)};
    return {ops::dropout(x, rate_, seed_ ? RandomKey{0, stream}.with(static_cast<uint64_t>(*seed_)).stream : stream, noise_shape(context, x))};
  }

 private:
  Shape noise_shape(LayerContext& context, Symbol x) const {
    if (!noise_shape_) return {};
    Shape shape = x.shape();
    bool fits = shape.size() == noise_shape_->size();
    for (size_t i = 0; fits && i < shape.size(); ++i) {
      const int64_t size = (*noise_shape_)[i].value_or(shape[i]);
      fits = size == 1 || size == shape[i];
      shape[i] = size;
    }
    if (!fits) throw Error("M11", context.path(), fmt::format("noise_shape must have for each axis of the input, {}, its size, 1 or null", text_of(x.shape())));
    return shape;
  }

  double rate_ = 0;
  std::optional<int64_t> seed_;
  std::optional<std::vector<std::optional<int64_t>>> noise_shape_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Dropout>();
