#include <fmt/format.h>

#include "core/ops/dense.h"
#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

/// Matrices a (n, k) and b (k, m), each with strides, so that transposing costs nothing.
struct Product {
  int64_t n = 0;
  int64_t k = 0;
  int64_t m = 0;
  int64_t a_row = 0;
  int64_t a_column = 0;
  int64_t b_row = 0;
  int64_t b_column = 0;
  bool relu = false;
};

// Columns of a result's row that are summed side by side.
constexpr int lanes = 32;

/// y = a b (+ bias). Each element is one sum over k in order. `batches` walks over the leading axes of a, b and y.
template <class T>
void run_product(const KernelArguments& arguments, const Product& shape, const StridedLoop<3>& batches, bool with_bias) {
  using C = ComputeType<T>;
  const T* first_a = input_of<T>(arguments, 0);
  const T* first_b = input_of<T>(arguments, 1);
  const T* bias = with_bias ? input_of<T>(arguments, 2) : nullptr;
  T* first_y = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, shape.m, lanes);
  const int64_t chunks = (shape.m + chunk - 1) / chunk;
  const int64_t inner = batches.inner();
  launch(arguments, batches.outer() * inner * shape.n * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t column = i % chunks * chunk;
    const int64_t row = i / chunks % shape.n;
    const int64_t batch = i / chunks / shape.n;
    const int width = static_cast<int>(column + chunk < shape.m ? chunk : shape.m - column);
    const T* a = first_a + batches.offset(0, batch / inner) + batch % inner * batches.step(0) + row * shape.a_row;
    const T* b = first_b + batches.offset(1, batch / inner) + batch % inner * batches.step(1) + column * shape.b_column;
    T* y = first_y + batches.offset(2, batch / inner) + batch % inner * batches.step(2) + row * shape.m + column;
    C total[lanes];
    for (int c = 0; c < width; ++c) total[c] = 0;
    if (width == lanes && shape.b_column == 1) {
      for (int64_t k = 0; k < shape.k; ++k, b += shape.b_row) {
        const C factor = static_cast<C>(a[k * shape.a_column]);
        for (int c = 0; c < lanes; ++c) total[c] += factor * static_cast<C>(b[c]);
      }
    } else {
      for (int64_t k = 0; k < shape.k; ++k, b += shape.b_row) {
        const C factor = static_cast<C>(a[k * shape.a_column]);
        for (int c = 0; c < width; ++c) total[c] += factor * static_cast<C>(b[c * shape.b_column]);
      }
    }
    for (int c = 0; c < width; ++c) {
      C sum = total[c];
      if (bias) sum += static_cast<C>(bias[column + c]);
      if (shape.relu) sum = sum > 0 || sum != sum ? sum : C(0);
      y[c] = static_cast<T>(sum);
    }
  });
}

std::string text_of_matrix(const Shape& shape, bool transposed) { return text_of(shape) + (transposed ? " transposed" : ""); }

/// A matrix of rows: all leading axes as one.
Symbol as_rows(Symbol x) { return x.shape().size() == 2 ? x : reshape(x, {product(x.shape(), 0, x.shape().size() - 1), x.last()}); }

Symbol one_matmul(Symbol a, Symbol b, bool transpose_a, bool transpose_b) { return add_node(std::make_shared<MatmulOp>(transpose_a, transpose_b), {a, b}); }

}  // namespace

std::vector<TensorType> MatmulOp::infer(std::span<const TensorType> inputs) const {
  const TensorType& a = inputs[0];
  const TensorType& b = inputs[1];
  expect_same_dtype(name(), a, b);
  expect_floating(name(), a);
  expect_rank_at_least(name(), a, 2);
  expect_rank_at_least(name(), b, 2);
  const size_t ra = a.shape.size();
  const size_t rb = b.shape.size();
  const int64_t inner_a = a.shape[transpose_a ? ra - 2 : ra - 1];
  const int64_t inner_b = b.shape[transpose_b ? rb - 1 : rb - 2];
  if (inner_a != inner_b) {
    throw shape_error(name(), fmt::format("the inner sizes differ: {} x {}", text_of_matrix(a.shape, transpose_a), text_of_matrix(b.shape, transpose_b)));
  }
  Shape result = broadcast_shape(name(), {a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
  result.push_back(a.shape[transpose_a ? ra - 1 : ra - 2]);
  result.push_back(b.shape[transpose_b ? rb - 2 : rb - 1]);
  return {{a.dtype, std::move(result)}};
}

std::vector<Symbol> MatmulOp::gradient(const NodeView& node, std::span<const Symbol> dy) const {
  const Symbol a = node.inputs[0];
  const Symbol b = node.inputs[1];
  const Symbol to_a = transpose_a ? matmul(b, dy[0], transpose_b, true) : matmul(dy[0], b, false, !transpose_b);
  const Symbol to_b = transpose_b ? matmul(dy[0], a, true, transpose_a) : matmul(a, dy[0], !transpose_a, false);
  if (a.shape().size() == 2 && b.shape().size() == 2) return {to_a, to_b};
  return {sum_to(to_a, a.shape()), sum_to(to_b, b.shape())};
}

std::unique_ptr<Kernel> MatmulOp::kernel(const NodeTypes& types) const {
  const Shape& a = types.inputs[0].shape;
  const Shape& b = types.inputs[1].shape;
  const Shape& y = types.outputs[0].shape;
  Product shape;
  shape.n = y[y.size() - 2];
  shape.m = y[y.size() - 1];
  shape.k = a[transpose_a ? a.size() - 2 : a.size() - 1];
  shape.a_row = transpose_a ? 1 : a.back();
  shape.a_column = transpose_a ? a.back() : 1;
  shape.b_row = transpose_b ? 1 : b.back();
  shape.b_column = transpose_b ? b.back() : 1;
  const Shape leading(y.begin(), y.end() - 2);
  // Strides of whole matrices: those of the leading axes, times a matrix's elements.
  const auto strides = [&](const Shape& of) {
    Shape result = broadcast_strides({of.begin(), of.end() - 2}, leading);
    for (int64_t& stride : result) stride *= of[of.size() - 2] * of[of.size() - 1];
    return result;
  };
  const StridedLoop<3> batches = strided_loop<3>(name(), leading, {strides(a), strides(b), strides(y)});
  return floating_kernel(types.inputs[0].dtype, [shape, batches]<class T>(Tag<T>, const KernelArguments& arguments) { run_product<T>(arguments, shape, batches, false); });
}

std::vector<TensorType> DenseOp::infer(std::span<const TensorType> inputs) const {
  const TensorType& x = inputs[0];
  const TensorType& kernel = inputs[1];
  expect_same_dtype(name(), x, kernel);
  expect_floating(name(), x);
  expect_rank_at_least(name(), x, 1);
  if (kernel.shape.size() != 2) throw shape_error(name(), fmt::format("expected a kernel with 2 axes, found {}", text_of(kernel.shape)));
  const int64_t k = kernel.shape[kernel_transposed ? 1 : 0];
  const int64_t m = kernel.shape[kernel_transposed ? 0 : 1];
  if (x.shape.back() != k) throw shape_error(name(), fmt::format("the inner sizes differ: {} x {}", text_of(x.shape), text_of_matrix(kernel.shape, kernel_transposed)));
  if (inputs.size() > 2) {
    expect_same_dtype(name(), x, inputs[2]);
    if (inputs[2].shape != Shape{m}) throw shape_error(name(), fmt::format("expected a bias of shape ({},), found {}", m, text_of(inputs[2].shape)));
  }
  TensorType result = x;
  result.shape.back() = m;
  return {result};
}

std::vector<Symbol> DenseOp::gradient(const NodeView& node, std::span<const Symbol> output_gradients) const {
  const Symbol x = node.inputs[0];
  const Symbol kernel = node.inputs[1];
  Symbol dy = output_gradients[0];
  if (activation == Activation::relu) dy = where(greater(node.outputs[0], node.graph.constant(dy.dtype(), 0)), dy, node.graph.constant(dy.dtype(), 0));
  const Symbol rows = as_rows(x);
  const Symbol dy_rows = as_rows(dy);
  std::vector<Symbol> results;
  results.push_back(dense(dy, kernel, Symbol(), !kernel_transposed));
  results.push_back(kernel_transposed ? one_matmul(dy_rows, rows, true, false) : one_matmul(rows, dy_rows, true, false));
  if (node.inputs.size() > 2) results.push_back(sum(dy_rows, {0}));
  return results;
}

std::unique_ptr<Kernel> DenseOp::kernel(const NodeTypes& types) const {
  const Shape& x = types.inputs[0].shape;
  const Shape& kernel = types.inputs[1].shape;
  Product shape;
  shape.n = product(x, 0, x.size() - 1);
  shape.k = x.back();
  shape.m = types.outputs[0].shape.back();
  shape.a_row = shape.k;
  shape.a_column = 1;
  shape.b_row = kernel_transposed ? 1 : kernel[1];
  shape.b_column = kernel_transposed ? kernel[1] : 1;
  shape.relu = activation == Activation::relu;
  return floating_kernel(types.inputs[0].dtype, [shape, with_bias = types.inputs.size() > 2]<class T>(Tag<T>, const KernelArguments& arguments) { run_product<T>(arguments, shape, {}, with_bias); });
}

std::shared_ptr<const Op> fused_with_relu(const Op& dense) {
  const auto* op = dynamic_cast<const DenseOp*>(&dense);
  if (!op || op->activation != Activation::none) return nullptr;
  return std::make_shared<DenseOp>(op->kernel_transposed, Activation::relu);
}

Symbol matmul(Symbol a, Symbol b, bool transpose_a, bool transpose_b) { return one_matmul(a, b, transpose_a, transpose_b); }

Symbol dense(Symbol x, Symbol kernel, Symbol bias, bool kernel_transposed) {
  const auto op = std::make_shared<DenseOp>(kernel_transposed);
  return bias ? add_node(op, {x, kernel, bias}) : add_node(op, {x, kernel});
}

Symbol bias_add(Symbol x, Symbol bias) {
  if (x.shape().empty() || bias.shape() != Shape{x.last()}) throw shape_error(x, "bias_add", fmt::format("bias {} does not match the last axis of {}", text_of(bias.shape()), text_of(x.shape())));
  return add(x, bias);
}

}  // namespace lockstep::ops
