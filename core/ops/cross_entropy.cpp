#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

/// Losses on logits x, forward and backward each in one pass over a row. With L = log(sum(exp(x))), kept for the way back:
///   softmax_cross_entropy         sum(t (L - x)),  dx = (exp(x - L) sum(t) - t) dy
///   sparse_softmax_cross_entropy  L - x[label],    dx = (exp(x - L) - [j = label]) dy;  NaN for a label outside the classes
///   sigmoid_cross_entropy         max(x, 0) - x t + log(1 + exp(-|x|)),  dx = (sigmoid(x) - t) dy
namespace lockstep::ops {

namespace {

template <class C, class T>
LOCKSTEP_HD C log_sum_exp(const T* x, int64_t n) {
  C high = -std::numeric_limits<C>::infinity();
  for (int64_t j = 0; j < n; ++j) high = static_cast<C>(x[j]) > high ? static_cast<C>(x[j]) : high;
  C total = 0;
  for (int64_t j = 0; j < n; ++j) total += std::exp(static_cast<C>(x[j]) - high);
  return high + std::log(total);
}

template <class T>
void run_dense_labels(const KernelArguments& arguments, int64_t rows, int64_t n) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const T* targets = input_of<T>(arguments, 1);
  T* loss = output_of<T>(arguments, 0);
  C* kept = output_of<C>(arguments, 1);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) {
    const T* x = logits + row * n;
    const T* t = targets + row * n;
    const C level = log_sum_exp<C>(x, n);
    C total = 0;
    for (int64_t j = 0; j < n; ++j) {
      const C target = static_cast<C>(t[j]);
      total += target == 0 ? C(0) : target * (level - static_cast<C>(x[j]));  // 0 for a class shut out by -infinity
    }
    loss[row] = static_cast<T>(total);
    kept[row] = level;
  });
}

template <class T>
void run_dense_labels_gradient(const KernelArguments& arguments, int64_t rows, int64_t n) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const T* targets = input_of<T>(arguments, 1);
  const C* kept = input_of<C>(arguments, 2);
  const T* dy = input_of<T>(arguments, 3);
  T* dlogits = output_of<T>(arguments);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) {
    const T* x = logits + row * n;
    const T* t = targets + row * n;
    T* dx = dlogits + row * n;
    const C level = kept[row];
    const C scale = static_cast<C>(dy[row]);
    C total = 0;
    for (int64_t j = 0; j < n; ++j) total += static_cast<C>(t[j]);
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>((std::exp(static_cast<C>(x[j]) - level) * total - static_cast<C>(t[j])) * scale);
  });
}

template <class T>
void run_sparse_labels(const KernelArguments& arguments, int64_t rows, int64_t n) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const int64_t* labels = input_of<int64_t>(arguments, 1);
  T* loss = output_of<T>(arguments, 0);
  C* kept = output_of<C>(arguments, 1);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) {
    const T* x = logits + row * n;
    const C level = log_sum_exp<C>(x, n);
    const int64_t label = labels[row];
    const bool known = label >= 0 && label < n;
    loss[row] = static_cast<T>(known ? level - static_cast<C>(x[label]) : std::numeric_limits<C>::quiet_NaN());
    kept[row] = level;
  });
}

template <class T>
void run_sparse_labels_gradient(const KernelArguments& arguments, int64_t rows, int64_t n) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const int64_t* labels = input_of<int64_t>(arguments, 1);
  const C* kept = input_of<C>(arguments, 2);
  const T* dy = input_of<T>(arguments, 3);
  T* dlogits = output_of<T>(arguments);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) {
    const T* x = logits + row * n;
    T* dx = dlogits + row * n;
    const C level = kept[row];
    const C scale = static_cast<C>(dy[row]);
    const int64_t label = labels[row];
    const C offset = label >= 0 && label < n ? C(0) : std::numeric_limits<C>::quiet_NaN();
    for (int64_t j = 0; j < n; ++j) dx[j] = static_cast<T>((std::exp(static_cast<C>(x[j]) - level) - C(j == label) + offset) * scale);
  });
}

template <class T>
void run_sigmoid(const KernelArguments& arguments, int64_t count) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const T* targets = input_of<T>(arguments, 1);
  T* loss = output_of<T>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) {
    const C x = static_cast<C>(logits[i]);
    loss[i] = static_cast<T>((x > 0 ? x : C(0)) - x * static_cast<C>(targets[i]) + std::log1p(std::exp(-std::fabs(x))));
  });
}

template <class T>
void run_sigmoid_gradient(const KernelArguments& arguments, int64_t count) {
  using C = ComputeType<T>;
  const T* logits = input_of<T>(arguments, 0);
  const T* targets = input_of<T>(arguments, 1);
  const T* dy = input_of<T>(arguments, 2);
  T* dlogits = output_of<T>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) {
    dlogits[i] = static_cast<T>((1 / (1 + std::exp(-static_cast<C>(logits[i]))) - static_cast<C>(targets[i])) * static_cast<C>(dy[i]));
  });
}

enum class Labels { dense,
                    sparse };

/// logits, targets or labels, L, dy -> dlogits.
template <Labels labels>
class SoftmaxGradientOp final : public GradientOp {
 public:
  std::string_view name() const override { return labels == Labels::dense ? "softmax_cross_entropy_gradient" : "sparse_softmax_cross_entropy_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [rows = types.inputs[3].elements(), n = types.inputs[0].shape.back()]<class T>(Tag<T>, const KernelArguments& arguments) {
      if (labels == Labels::dense) {
        run_dense_labels_gradient<T>(arguments, rows, n);
      } else {
        run_sparse_labels_gradient<T>(arguments, rows, n);
      }
    });
  }
  bool may_overwrite(size_t input) const override { return input == 0; }
};

/// logits, targets or labels -> the loss of each row, and L in f32 or f64.
template <Labels labels>
class SoftmaxOp final : public Op {
 public:
  std::string_view name() const override { return labels == Labels::dense ? "softmax_cross_entropy" : "sparse_softmax_cross_entropy"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(name(), inputs[0]);
    expect_rank_at_least(name(), inputs[0], 1);
    const Shape rows(inputs[0].shape.begin(), inputs[0].shape.end() - 1);
    if (labels == Labels::dense) {
      expect_same_dtype(name(), inputs[0], inputs[1]);
      if (inputs[0].shape != inputs[1].shape) throw shape_error(name(), fmt::format("logits {} and targets {} differ", text_of(inputs[0].shape), text_of(inputs[1].shape)));
    } else if (inputs[1].shape != rows) {
      throw shape_error(name(), fmt::format("logits {} need labels of shape {}, found {}", text_of(inputs[0].shape), text_of(rows), text_of(inputs[1].shape)));
    }
    return {{inputs[0].dtype, rows}, {inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32, rows}};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    return {add_node(std::make_shared<SoftmaxGradientOp<labels>>(), {node.inputs[0], node.inputs[1], node.outputs[1], dy[0]}), Symbol()};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [rows = types.outputs[0].elements(), n = types.inputs[0].shape.back()]<class T>(Tag<T>, const KernelArguments& arguments) {
      if (labels == Labels::dense) {
        run_dense_labels<T>(arguments, rows, n);
      } else {
        run_sparse_labels<T>(arguments, rows, n);
      }
    });
  }
};

class SigmoidGradientOp final : public GradientOp {
 public:
  std::string_view name() const override { return "sigmoid_cross_entropy_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [count = types.inputs[0].elements()]<class T>(Tag<T>, const KernelArguments& arguments) { run_sigmoid_gradient<T>(arguments, count); });
  }
  bool may_overwrite(size_t) const override { return true; }
};

class SigmoidOp final : public Op {
 public:
  std::string_view name() const override { return "sigmoid_cross_entropy"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(name(), inputs[0]);
    expect_same_dtype(name(), inputs[0], inputs[1]);
    if (inputs[0].shape != inputs[1].shape) throw shape_error(name(), fmt::format("logits {} and targets {} differ", text_of(inputs[0].shape), text_of(inputs[1].shape)));
    return {inputs[0]};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override { return {add_node(std::make_shared<SigmoidGradientOp>(), {node.inputs[0], node.inputs[1], dy[0]}), Symbol()}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [count = types.inputs[0].elements()]<class T>(Tag<T>, const KernelArguments& arguments) { run_sigmoid<T>(arguments, count); });
  }
  bool may_overwrite(size_t) const override { return true; }
};

}  // namespace

Symbol softmax_cross_entropy(Symbol logits, Symbol targets) { return add_node(std::make_shared<SoftmaxOp<Labels::dense>>(), {logits, targets}); }
Symbol sparse_softmax_cross_entropy(Symbol logits, Symbol labels) {
  return add_node(std::make_shared<SoftmaxOp<Labels::sparse>>(), {logits, as_indices("sparse_softmax_cross_entropy", labels)});
}
Symbol sigmoid_cross_entropy(Symbol logits, Symbol targets) { return add_node(std::make_shared<SigmoidOp>(), {logits, targets}); }

}  // namespace lockstep::ops
