#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"
#include "layers/norm.h"

namespace lockstep::layers {

/// The sum of products of two inputs along an axis of each, row by row. x0 (N, a..., K, b...), x1 (N, c..., K, d...) -> (N, a..., b..., c..., d...);
/// (N, 1) where both are matrices. `normalize` divides by the norms along those axes first: the cosine.
class Dot final : public Layer {
 public:
  std::string_view type() const override { return "Dot"; }
  void fields(Fields& fields) override {
    fields.add("axes", axes_, "the axis of the products: one for both inputs, or one of each").require();
    fields.add("normalize", normalize_, "cosine instead of product");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 2);
    const Side a = side(context, inputs[0], axes_.first);
    const Side b = side(context, inputs[1], axes_.second);
    if (a.size != b.size || a.rows != b.rows) {
      throw Error("M11", context.path(), fmt::format("axis {} of {} and axis {} of {} must have equal sizes", axes_.first, text_of(inputs[0].shape()), axes_.second, text_of(inputs[1].shape())));
    }
    Shape shape{a.rows};
    shape.insert(shape.end(), a.others.begin(), a.others.end());
    shape.insert(shape.end(), b.others.begin(), b.others.end());
    if (shape.size() == 1) shape.push_back(1);
    return {ops::reshape(ops::matmul(a.matrix, b.matrix, false, true), shape)};
  }

 private:
  /// An input as (rows, product of its other axes, size of the axis of products).
  struct Side {
    Symbol matrix;
    int64_t rows = 0;
    int64_t size = 0;
    Shape others;
  };

  Side side(LayerContext& context, Symbol given, int64_t axis_given) const {
    const int64_t axis = checked_axis(context.path(), given, axis_given);
    if (axis == 0 || given.shape().size() < 2) throw Error("M11", context.path(), fmt::format("axis {} of {} is the batch's; the product is along another", axis_given, text_of(given.shape())));
    Symbol x = context.computed(given);
    if (normalize_) x = l2_normalize(x, axis);
    Side result;
    result.rows = x.shape()[0];
    result.size = x.shape()[static_cast<size_t>(axis)];
    std::vector<int64_t> order{0};
    for (size_t i = 1; i < x.shape().size(); ++i) {
      if (static_cast<int64_t>(i) == axis) continue;
      order.push_back(static_cast<int64_t>(i));
      result.others.push_back(x.shape()[i]);
    }
    order.push_back(axis);
    result.matrix = ops::reshape(ops::transpose(x, order), {result.rows, elements_of(result.others), result.size});
    return result;
  }

  Pair axes_{-1, -1};
  bool normalize_ = false;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Dot>();
