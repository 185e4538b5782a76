#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = x * scale + offset; integers are cast to the compute dtype first. scale and offset: numbers, or one for each element of the last axis.
class Rescaling final : public Layer {
 public:
  std::string_view type() const override { return "Rescaling"; }
  void fields(Fields& fields) override {
    fields.add("scale", scale_, "factor").require();
    fields.add("offset", offset_, "added after scaling");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Symbol x = context.computed(inputs[0]);
    Symbol y = scale_.scalar ? ops::multiply(x, scale_.values[0]) : ops::multiply(x, vector(context, x, scale_, "scale"));
    if (!offset_.scalar) y = ops::add(y, vector(context, x, offset_, "offset"));
    if (offset_.scalar && offset_.values[0] != 0) y = ops::add(y, offset_.values[0]);
    return {y};
  }

 private:
  static Symbol vector(LayerContext& context, Symbol x, const Numbers& numbers, std::string_view what) {
    const auto count = static_cast<int64_t>(numbers.values.size());
    if (x.shape().empty() || x.last() != count) throw Error("M11", context.path(), fmt::format("{} has {} numbers, the input is {}", what, count, text_of(x.shape())));
    return context.graph().constant(cast(Tensor::of<double>(DType::f64, {count}, numbers.values), x.dtype()));
  }

  Numbers scale_ = Numbers::of(1);
  Numbers offset_ = Numbers::of(0);
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Rescaling>();
