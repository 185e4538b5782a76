#include <cmath>
#include <limits>

#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

/// Functions of whole rows: softmax, log_softmax, sparsemax. Along another axis than the last the argument is transposed around them.
namespace lockstep::ops {

namespace {

/// exp(x - max) / sum, over a row. dx = y (dy - sum(y dy)).
struct Softmax {
  static constexpr std::string_view name = "softmax", gradient_name = "softmax_gradient";
  static constexpr bool of_result = true;
  template <class T>
  LOCKSTEP_HD static void value(const T* x, T* y, int64_t n) {
    using C = ComputeType<T>;
    C high = -std::numeric_limits<C>::infinity();
    for (int64_t j = 0; j < n; ++j) high = static_cast<C>(x[j]) > high ? static_cast<C>(x[j]) : high;
    C total = 0;
    for (int64_t j = 0; j < n; ++j) total += std::exp(static_cast<C>(x[j]) - high);
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(std::exp(static_cast<C>(x[j]) - high) / total);
  }
  template <class T>
  LOCKSTEP_HD static void gradient(const T* y, const T* dy, T* dx, int64_t n) {
    using C = ComputeType<T>;
    C dot = 0;
    for (int64_t j = 0; j < n; ++j) dot += static_cast<C>(y[j]) * static_cast<C>(dy[j]);
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>(static_cast<C>(y[j]) * (static_cast<C>(dy[j]) - dot));
  }
};

/// x - max - log(sum(exp(x - max))). dx = dy - exp(y) sum(dy).
struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax", gradient_name = "log_softmax_gradient";
  static constexpr bool of_result = true;
  template <class T>
  LOCKSTEP_HD static void value(const T* x, T* y, int64_t n) {
    using C = ComputeType<T>;
    C high = -std::numeric_limits<C>::infinity();
    for (int64_t j = 0; j < n; ++j) high = static_cast<C>(x[j]) > high ? static_cast<C>(x[j]) : high;
    C total = 0;
    for (int64_t j = 0; j < n; ++j) total += std::exp(static_cast<C>(x[j]) - high);
    const C below = std::log(total);
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(static_cast<C>(x[j]) - high - below);
  }
  template <class T>
  LOCKSTEP_HD static void gradient(const T* y, const T* dy, T* dx, int64_t n) {
    using C = ComputeType<T>;
    C total = 0;
    for (int64_t j = 0; j < n; ++j) total += static_cast<C>(dy[j]);
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>(static_cast<C>(dy[j]) - std::exp(static_cast<C>(y[j])) * total);
  }
};

/// max(x - tau, 0). With the row sorted downwards, c_j its running sums and k the last j with x_j > (c_j - 1) / j, Keras 3 takes
/// tau = (c_1 + ... + c_k - 1) / k, where Martins and Astudillo 2016 have (c_k - 1) / k; a model trained there needs Keras's values.
/// Without sorting: a value's place is one more than the count of those above it (of equals, those before it).
struct Sparsemax {
  static constexpr std::string_view name = "sparsemax", gradient_name = "sparsemax_gradient";
  static constexpr bool of_result = false;
  template <class C>
  struct Place {
    int64_t number;  ///< from 1
    C running_sum;
    LOCKSTEP_HD bool supported(C x) const { return x - (running_sum - 1) / static_cast<C>(number) > 0; }
  };
  template <class C, class T>
  LOCKSTEP_HD static Place<C> place_of(const T* x, int64_t i, int64_t n) {
    const C own = static_cast<C>(x[i]);
    Place<C> place{1, own};
    for (int64_t j = 0; j < n; ++j) {
      const C other = static_cast<C>(x[j]);
      if (other > own || (other == own && j < i)) {
        ++place.number;
        place.running_sum += other;
      }
    }
    return place;
  }
  template <class C>
  struct Support {
    int64_t count;
    C tau;
  };
  template <class C, class T>
  LOCKSTEP_HD static Support<C> support_of(const T* x, int64_t n) {
    int64_t count = 0;
    C total = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Place<C> place = place_of<C>(x, i, n);
      if (!place.supported(static_cast<C>(x[i]))) continue;
      ++count;
      total += place.running_sum;
    }
    return {count, (total - 1) / static_cast<C>(count)};
  }
  template <class T>
  LOCKSTEP_HD static void value(const T* x, T* y, int64_t n) {
    using C = ComputeType<T>;
    const C tau = support_of<C>(x, n).tau;
    for (int64_t j = 0; j < n; ++j) {
      const C above = static_cast<C>(x[j]) - tau;
      y[j] = static_cast<T>(above < 0 ? C(0) : above);
    }
  }
  /// The value in place p <= k is in k - p + 1 of the running sums.
  template <class T>
  LOCKSTEP_HD static void gradient(const T* x, const T* dy, T* dx, int64_t n) {
    using C = ComputeType<T>;
    const Support<C> support = support_of<C>(x, n);
    C to_tau = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (static_cast<C>(x[j]) > support.tau) to_tau += static_cast<C>(dy[j]);
    }
    for (int64_t j = 0; j < n; ++j) {
      const C own = static_cast<C>(x[j]);
      const Place<C> place = place_of<C>(x, j, n);
      C result = own > support.tau ? static_cast<C>(dy[j]) : C(0);
      if (place.supported(own)) result -= to_tau * static_cast<C>(support.count - place.number + 1) / static_cast<C>(support.count);
      dx[j] = static_cast<T>(result);
    }
  }
};

template <class T, class Formula>
void run_value(const KernelArguments& arguments, int64_t rows, int64_t n) {
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) { Formula::value(x + row * n, y + row * n, n); });
}

template <class T, class Formula>
void run_gradient(const KernelArguments& arguments, int64_t rows, int64_t n) {
  const T* at = input_of<T>(arguments, 0);
  const T* dy = input_of<T>(arguments, 1);
  T* dx = output_of<T>(arguments);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) { Formula::gradient(at + row * n, dy + row * n, dx + row * n, n); });
}

template <class Formula>
class RowGradientOp final : public GradientOp {
 public:
  std::string_view name() const override { return Formula::gradient_name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& x = types.inputs[0].shape;
    return floating_kernel(types.inputs[0].dtype, [rows = product(x, 0, x.size() - 1), n = x.back()]<class T>(Tag<T>, const KernelArguments& arguments) { run_gradient<T, Formula>(arguments, rows, n); });
  }
};

template <class Formula>
class RowOp final : public Op {
 public:
  std::string_view name() const override { return Formula::name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(name(), inputs[0]);
    return {inputs[0]};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    return {add_node(std::make_shared<RowGradientOp<Formula>>(), {Formula::of_result ? node.outputs[0] : node.inputs[0], dy[0]})};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& x = types.inputs[0].shape;
    return floating_kernel(types.inputs[0].dtype, [rows = product(x, 0, x.size() - 1), n = x.back()]<class T>(Tag<T>, const KernelArguments& arguments) { run_value<T, Formula>(arguments, rows, n); });
  }
};

template <class Formula>
Symbol by_rows(Symbol x, int64_t axis) {
  axis = axis_of(Formula::name, axis, x);
  const int64_t last = static_cast<int64_t>(x.shape().size()) - 1;
  if (axis == last) return add_node(std::make_shared<RowOp<Formula>>(), {x});
  std::vector<int64_t> swapped;
  for (int64_t i = 0; i <= last; ++i) swapped.push_back(i == axis ? last : (i == last ? axis : i));
  return transpose(add_node(std::make_shared<RowOp<Formula>>(), {transpose(x, swapped)}), swapped);
}

}  // namespace

Symbol softmax(Symbol x, int64_t axis) { return by_rows<Softmax>(x, axis); }
Symbol log_softmax(Symbol x, int64_t axis) { return by_rows<LogSoftmax>(x, axis); }
Symbol sparsemax(Symbol x, int64_t axis) { return by_rows<Sparsemax>(x, axis); }

}  // namespace lockstep::ops
