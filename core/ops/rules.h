#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/error/error.h"
#include "core/graph/op.h"

/// What the shape rules of ops share. Errors: M03 for shapes, M04 for dtypes; the graph adds the layer to those of infer().
namespace lockstep::ops {

Error shape_error(std::string_view op, std::string_view message);
Error dtype_error(std::string_view op, std::string_view message);
/// For what is found wrong before a node is added: names the layer itself.
Error shape_error(Symbol x, std::string_view op, std::string_view message);

/// The axis counted from the front. Throws M03 when the shape has no such axis.
int64_t axis_of(std::string_view op, int64_t axis, const Shape& shape);
int64_t axis_of(std::string_view op, int64_t axis, Symbol x);
/// Sorted, counted from the front, each once; all of them when `axes` is empty.
std::vector<int64_t> axes_of(std::string_view op, std::vector<int64_t> axes, Symbol x);
/// Integer values as int64. Throws M04 for other dtypes.
Symbol as_indices(std::string_view op, Symbol x);

void expect_floating(std::string_view op, const TensorType& type);
/// A floating dtype, int32 or int64: what arithmetic is compiled for.
void expect_numeric(std::string_view op, const TensorType& type);
void expect_same_dtype(std::string_view op, const TensorType& a, const TensorType& b);
void expect_rank_at_least(std::string_view op, const TensorType& type, size_t rank);

/// numpy's rule: shapes are aligned at their last axes, and an axis of size 1 stretches.
Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b);
/// Product of sizes [begin, end).
int64_t product(const Shape& shape, size_t begin, size_t end);
/// Elements from one index of each axis to the next, row-major.
Shape row_major_strides(const Shape& shape);

/// Adds a node with one output.
Symbol add_node(std::shared_ptr<const Op> op, std::initializer_list<Symbol> inputs);

/// True when the types' elements lie in the same places: same shape, same size of an element.
bool same_places(const TensorType& a, const TensorType& b);

/// An op that is a step of another's gradient: it can't be differentiated itself, and says so.
class GradientOp : public Op {
 public:
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> output_gradients) const final;
};

}  // namespace lockstep::ops
