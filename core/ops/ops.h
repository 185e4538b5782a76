#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

/// The operations that layers, losses and optimizers describe computations with. Each adds nodes to the graph of its arguments; shapes, gradients and
/// sources stand in the op's own file. Names and arguments are Keras's (keras.ops) where Keras has them. Axes may be negative: -1 is the last.
namespace lockstep::ops {

// Element by element (unary.cpp). Any floating dtype; same shape.
Symbol negative(Symbol x);
Symbol absolute(Symbol x);
Symbol square(Symbol x);
Symbol sqrt(Symbol x);
Symbol rsqrt(Symbol x);
Symbol exp(Symbol x);
Symbol log(Symbol x);
Symbol log1p(Symbol x);
Symbol expm1(Symbol x);
Symbol sign(Symbol x);
Symbol sin(Symbol x);
Symbol cos(Symbol x);
Symbol reciprocal(Symbol x);
Symbol floor(Symbol x);
Symbol ceil(Symbol x);
Symbol erf(Symbol x);
Symbol tanh(Symbol x);
Symbol sigmoid(Symbol x);
/// 1 where the element is finite, else 0; same dtype as x.
Symbol is_finite(Symbol x);

// Activations of Keras 3 (activations.cpp): formula and derivative of each stand in the file.
Symbol relu(Symbol x, double negative_slope = 0, std::optional<double> max_value = {}, double threshold = 0);
Symbol relu6(Symbol x);
Symbol elu(Symbol x, double alpha = 1);
Symbol selu(Symbol x);
Symbol celu(Symbol x, double alpha = 1);
Symbol gelu(Symbol x, bool approximate);
Symbol silu(Symbol x);
Symbol mish(Symbol x);
Symbol softplus(Symbol x);
Symbol softsign(Symbol x);
Symbol log_sigmoid(Symbol x);
Symbol hard_sigmoid(Symbol x);         ///< Keras 3: relu6(x + 3) / 6
Symbol hard_sigmoid_keras2(Symbol x);  ///< Keras 2: clip(0.2 x + 0.5, 0, 1)
Symbol hard_silu(Symbol x);
Symbol hard_tanh(Symbol x);
Symbol hard_shrink(Symbol x, double threshold = 0.5);
Symbol soft_shrink(Symbol x, double threshold = 0.5);
Symbol tanh_shrink(Symbol x);
Symbol threshold(Symbol x, double threshold, double default_value);
Symbol squareplus(Symbol x, double b = 4);
Symbol sparse_plus(Symbol x);
Symbol sparse_sigmoid(Symbol x);
Symbol glu(Symbol x, int64_t axis = -1);
Symbol softmax(Symbol x, int64_t axis = -1);
Symbol log_softmax(Symbol x, int64_t axis = -1);
Symbol sparsemax(Symbol x, int64_t axis = -1);

// Two arguments, broadcast as numpy does (binary.cpp). Same dtype in.
Symbol add(Symbol a, Symbol b);
Symbol subtract(Symbol a, Symbol b);
Symbol multiply(Symbol a, Symbol b);
Symbol divide(Symbol a, Symbol b);
Symbol divide_no_nan(Symbol a, Symbol b);  ///< 0 where b is 0
Symbol power(Symbol a, Symbol b);
Symbol maximum(Symbol a, Symbol b);
Symbol minimum(Symbol a, Symbol b);
// With a number.
Symbol add(Symbol a, double b);
Symbol multiply(Symbol a, double b);
Symbol clip(Symbol x, double low, double high);
// Comparisons give bool; any dtype.
Symbol equal(Symbol a, Symbol b);
Symbol not_equal(Symbol a, Symbol b);
Symbol greater(Symbol a, Symbol b);
Symbol greater_equal(Symbol a, Symbol b);
Symbol less(Symbol a, Symbol b);
Symbol less_equal(Symbol a, Symbol b);
Symbol logical_and(Symbol a, Symbol b);
Symbol logical_or(Symbol a, Symbol b);
Symbol logical_not(Symbol a);
/// a where the bool condition holds, else b; broadcast.
Symbol where(Symbol condition, Symbol a, Symbol b);

// Changing dtype or shape.
Symbol cast(Symbol x, DType dtype);
Symbol stop_gradient(Symbol x);
Symbol identity(Symbol x);
Symbol reshape(Symbol x, Shape shape);  ///< no copy is promised; one axis may be -1
Symbol transpose(Symbol x, std::vector<int64_t> axes);
Symbol broadcast_to(Symbol x, Shape shape);
Symbol expand_dims(Symbol x, int64_t axis);
Symbol squeeze(Symbol x, int64_t axis);
Symbol concatenate(const std::vector<Symbol>& parts, int64_t axis = -1);
/// Elements begin, begin + step, ... along an axis; `size` of them.
Symbol slice(Symbol x, int64_t axis, int64_t begin, int64_t size, int64_t step = 1);
Symbol pad(Symbol x, std::vector<std::pair<int64_t, int64_t>> before_after, double value = 0);

// Reductions (reduce.cpp). Empty axes: all of them. The order of additions is fixed: it depends on the shape alone. Of nothing: the sum and mean are 0,
// max -infinity, min infinity.
Symbol sum(Symbol x, std::vector<int64_t> axes = {}, bool keepdims = false);
Symbol mean(Symbol x, std::vector<int64_t> axes = {}, bool keepdims = false);
Symbol max(Symbol x, std::vector<int64_t> axes = {}, bool keepdims = false);
Symbol min(Symbol x, std::vector<int64_t> axes = {}, bool keepdims = false);
Symbol argmax(Symbol x, int64_t axis = -1);  ///< int64; the first of equals
/// The sum of x down to a shape that broadcasts to x's: the gradient of broadcasting.
Symbol sum_to(Symbol x, Shape shape);

// Products (matmul.cpp).
/// (..., n, k) x (..., k, m) -> (..., n, m); leading axes broadcast. Either last pair may be read transposed. oneDNN computes f32.
Symbol matmul(Symbol a, Symbol b, bool transpose_a = false, bool transpose_b = false);
/// y = x kernel + bias over the last axis: x (..., k), kernel (k, m) or (m, k) when transposed, bias (m) or invalid.
Symbol dense(Symbol x, Symbol kernel, Symbol bias, bool kernel_transposed = false);
/// x (..., n) + bias (n); its gradient sums over all rows in a fixed order.
Symbol bias_add(Symbol x, Symbol bias);

// Convolution and pooling, channels last (convolution.cpp, pooling.cpp).
struct Window2D {
  int64_t kernel[2] = {1, 1};
  int64_t strides[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  int64_t pad_before[2] = {0, 0};
  int64_t pad_after[2] = {0, 0};

  /// Keras's "same": output ceil(n / stride), the odd cell of padding at the end. "valid": none.
  static Window2D of(const Shape& x, std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> dilation, bool same);
  int64_t output(int axis, int64_t input) const;
};
/// x (n, h, w, c), kernel (kh, kw, c / groups, f) -> (n, oh, ow, f).
Symbol conv2d(Symbol x, Symbol kernel, const Window2D& window, int64_t groups = 1);
/// x (n, h, w, c) -> (n, oh, ow, c). The gradient goes to the first maximum of each window.
Symbol max_pool2d(Symbol x, const Window2D& window);

// Tables (gather.cpp).
/// Rows of table (v, d) by integer indices (...) -> (..., d). An index outside 0..v-1 gives a row of NaN. The gradient adds rows in index order.
Symbol gather_rows(Symbol table, Symbol indices);
/// Integer x (...) -> (..., classes) of dtype; out of range: zeros.
Symbol one_hot(Symbol indices, int64_t classes, DType dtype);

// Losses on logits, fused and stable (cross_entropy.cpp). The class axis is the last; results drop it. No gradient to the targets.
/// -sum(target * log_softmax(logits)).
Symbol softmax_cross_entropy(Symbol logits, Symbol targets);
/// -log_softmax(logits)[label]; labels are integers.
Symbol sparse_softmax_cross_entropy(Symbol logits, Symbol labels);
/// max(x, 0) - x z + log(1 + exp(-|x|)), element by element.
Symbol sigmoid_cross_entropy(Symbol logits, Symbol targets);

// Random (random.cpp).
/// x / (1 - rate) where a draw is kept, else 0. The draw depends on (seed, step, stream, row of the global batch, element in the row, or in the
/// row's noise shape). `noise_shape`: size 1 axes share a draw, -1 is x's size; empty: x's shape. Row: first axis; 1 there: one draw for all rows, and
/// a replica with one row says -1 for its own.
Symbol dropout(Symbol x, double rate, uint64_t stream, Shape noise_shape = {});

// Over replicas (replica.cpp).
/// The sum over all replicas, in the fixed tree; every replica gets the same value. The gradient is the sum of gradients over replicas.
Symbol replica_sum(Symbol x);
/// Prints a line once a replica every `every_steps` steps and in the warm-up; "{replica}", "{replicas}", "{rank}", "{step}" are filled in. Identity.
Symbol print(Symbol x, std::string message, int64_t every_steps);
/// Identity that writes a LivenessRecord for `layer`.
Symbol liveness_probe(Symbol x, std::string layer);

}  // namespace lockstep::ops
