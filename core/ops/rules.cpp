#include "core/ops/rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ops/ops.h"

namespace lockstep::ops {

Error shape_error(std::string_view op, std::string_view message) { return Error("M03", "", fmt::format("{}: {}", op, message)); }
Error dtype_error(std::string_view op, std::string_view message) { return Error("M04", "", fmt::format("{}: {}", op, message)); }

Error shape_error(Symbol x, std::string_view op, std::string_view message) { return Error("M03", x.graph().layer(), fmt::format("{}: {}", op, message)); }

namespace {

bool has_axis(int64_t axis, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  return axis >= -rank && axis < rank;
}

int64_t from_front(int64_t axis, const Shape& shape) { return axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis; }
std::string no_axis(int64_t axis, const Shape& shape) { return fmt::format("axis {} does not exist in shape {}, which has {} axes", axis, text_of(shape), shape.size()); }

}  // namespace

int64_t axis_of(std::string_view op, int64_t axis, const Shape& shape) {
  if (!has_axis(axis, shape)) throw shape_error(op, no_axis(axis, shape));
  return from_front(axis, shape);
}

int64_t axis_of(std::string_view op, int64_t axis, Symbol x) {
  if (!has_axis(axis, x.shape())) throw shape_error(x, op, no_axis(axis, x.shape()));
  return from_front(axis, x.shape());
}

std::vector<int64_t> axes_of(std::string_view op, std::vector<int64_t> axes, Symbol x) {
  if (axes.empty()) {
    for (size_t i = 0; i < x.shape().size(); ++i) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }
  for (int64_t& axis : axes) axis = axis_of(op, axis, x);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) throw shape_error(x, op, "an axis is given twice");
  return axes;
}

Symbol as_indices(std::string_view op, Symbol x) {
  if (!is_integer(x.dtype())) throw Error("M04", x.graph().layer(), fmt::format("{}: expected integers, found {}; cast first", op, x.type().text()));
  return cast(x, DType::i64);
}

void expect_floating(std::string_view op, const TensorType& type) {
  if (!is_floating(type.dtype)) throw dtype_error(op, fmt::format("expected floating-point values, found {}; cast first", type.text()));
}

void expect_numeric(std::string_view op, const TensorType& type) {
  if (!is_floating(type.dtype) && type.dtype != DType::i32 && type.dtype != DType::i64) {
    throw dtype_error(op, fmt::format("expected floating-point, int32 or int64 values, found {}; cast first", type.text()));
  }
}

void expect_same_dtype(std::string_view op, const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype) throw dtype_error(op, fmt::format("the dtypes differ: {} and {}; cast one", a.text(), b.text()));
}

void expect_rank_at_least(std::string_view op, const TensorType& type, size_t rank) {
  if (type.shape.size() < rank) throw shape_error(op, fmt::format("expected at least {} axes, found shape {}", rank, text_of(type.shape)));
}

Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw shape_error(op, fmt::format("the shapes do not broadcast: {} and {}", text_of(a), text_of(b)));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Symbol add_node(std::shared_ptr<const Op> op, std::initializer_list<Symbol> inputs) {
  return inputs.begin()->graph().add(std::move(op), {inputs.begin(), inputs.size()}).front();
}

bool same_places(const TensorType& a, const TensorType& b) { return a.shape == b.shape && size_of(a.dtype) == size_of(b.dtype); }

std::vector<Symbol> GradientOp::gradient(const NodeView&, std::span<const Symbol>) const {
  throw Error("M05", "", fmt::format("{}: a gradient of a gradient is not defined for it", name()));
}

}  // namespace lockstep::ops
