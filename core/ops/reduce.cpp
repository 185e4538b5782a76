#include <limits>

#include <fmt/format.h>

#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

namespace {

/// Adjacent axes as one, between those before and those after them.
struct Span3 {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

struct SumOf {
  template <class C>
  LOCKSTEP_HD static C identity() { return C(0); }
  template <class C>
  LOCKSTEP_HD static C combine(C a, C b) { return a + b; }
};
/// NaN spreads; of nothing -infinity, or the lowest integer.
struct MaxOf {
  template <class C>
  LOCKSTEP_HD static C identity() { return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest(); }
  template <class C>
  LOCKSTEP_HD static C combine(C a, C b) { return b > a || b != b ? b : a; }
};
struct MinOf {
  template <class C>
  LOCKSTEP_HD static C identity() { return std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max(); }
  template <class C>
  LOCKSTEP_HD static C combine(C a, C b) { return b < a || b != b ? b : a; }
};

// Runs of this many are combined first, then their results: rounding errors of long sums stay small.
constexpr int64_t run_length = 128;
// Columns, or places in a row, that are combined side by side: enough for vector registers.
constexpr int lanes = 32;

/// Reduced axes that are not the last: each column is combined from top to bottom, in runs.
template <class T, class Reducer>
void run_columns(const KernelArguments& arguments, Span3 shape, double scale) {
  using C = Wide<T>;
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, shape.inner, lanes);
  const int64_t chunks = (shape.inner + chunk - 1) / chunk;
  launch(arguments, shape.outer * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t outer = i / chunks;
    const int64_t column = i % chunks * chunk;
    const int width = static_cast<int>(column + chunk < shape.inner ? chunk : shape.inner - column);
    C total[lanes];
    C part[lanes];
    for (int k = 0; k < width; ++k) total[k] = Reducer::template identity<C>();
    const T* from = x + outer * shape.reduced * shape.inner + column;
    for (int64_t begin = 0; begin < shape.reduced; begin += run_length) {
      const int64_t end = begin + run_length < shape.reduced ? begin + run_length : shape.reduced;
      for (int k = 0; k < width; ++k) part[k] = Reducer::template identity<C>();
      if (width == lanes) {
        for (int64_t r = begin; r < end; ++r, from += shape.inner) {
          for (int k = 0; k < lanes; ++k) part[k] = Reducer::combine(part[k], static_cast<C>(from[k]));
        }
      } else {
        for (int64_t r = begin; r < end; ++r, from += shape.inner) {
          for (int k = 0; k < width; ++k) part[k] = Reducer::combine(part[k], static_cast<C>(from[k]));
        }
      }
      for (int k = 0; k < width; ++k) total[k] = Reducer::combine(total[k], part[k]);
    }
    T* to = y + outer * shape.inner + column;
    for (int k = 0; k < width; ++k) to[k] = static_cast<T>(scale == 1 ? total[k] : static_cast<C>(total[k] * scale));
  });
}

/// Reduced axes that are the last: element j of a row goes to lane j mod `lanes`; lanes are combined in a tree at the end.
template <class T, class Reducer>
void run_rows(const KernelArguments& arguments, Span3 shape, double scale) {
  using C = Wide<T>;
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  launch(arguments, shape.outer, [=] LOCKSTEP_HD(int64_t row) {
    const T* from = x + row * shape.reduced;
    C total[lanes];
    C part[lanes];
    for (int k = 0; k < lanes; ++k) total[k] = Reducer::template identity<C>();
    for (int64_t begin = 0; begin < shape.reduced; begin += lanes * run_length) {
      const int64_t end = begin + lanes * run_length < shape.reduced ? begin + lanes * run_length : shape.reduced;
      for (int k = 0; k < lanes; ++k) part[k] = Reducer::template identity<C>();
      int64_t j = begin;
      for (; j + lanes <= end; j += lanes) {
        for (int k = 0; k < lanes; ++k) part[k] = Reducer::combine(part[k], static_cast<C>(from[j + k]));
      }
      for (int k = 0; j + k < end; ++k) part[k] = Reducer::combine(part[k], static_cast<C>(from[j + k]));
      for (int k = 0; k < lanes; ++k) total[k] = Reducer::combine(total[k], part[k]);
    }
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) total[k] = Reducer::combine(total[k], total[k + half]);
    }
    y[row] = static_cast<T>(scale == 1 ? total[0] : static_cast<C>(total[0] * scale));
  });
}

template <class T, class Reducer>
void run(const KernelArguments& arguments, Span3 shape, double scale) {
  if (shape.reduced == 1) {
    copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], static_cast<size_t>(shape.outer * shape.inner) * sizeof(T));
  } else if (shape.inner == 1) {
    run_rows<T, Reducer>(arguments, shape, scale);
  } else {
    run_columns<T, Reducer>(arguments, shape, scale);
  }
}

double reciprocal_of(int64_t count) { return count == 0 ? 0 : 1 / static_cast<double>(count); }

enum class Kind { sum,
                  mean,
                  max,
                  min };
constexpr std::string_view kind_names[] = {"sum", "mean", "max", "min"};

/// Reduces axes [begin, end), which stay as one axis of size 1 each. The mean of nothing is 0, so that a replica without rows adds nothing.
class ReduceOp final : public Op {
 public:
  ReduceOp(Kind kind, size_t begin, size_t end) : kind_(kind), begin_(begin), end_(end) {}
  std::string_view name() const override { return kind_names[static_cast<size_t>(kind_)]; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (kind_ == Kind::mean) {
      expect_floating(name(), inputs[0]);
    } else {
      expect_numeric(name(), inputs[0]);
    }
    TensorType result = inputs[0];
    for (size_t i = begin_; i < end_; ++i) result.shape[i] = 1;
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    const Symbol x = node.inputs[0];
    if (!is_floating(x.dtype())) return {Symbol()};
    if (kind_ == Kind::sum) return {broadcast_to(dy[0], x.shape())};
    if (kind_ == Kind::mean) return {broadcast_to(multiply(dy[0], reciprocal_of(product(x.shape(), begin_, end_))), x.shape())};
    // Equal extremes share the gradient.
    const Symbol chosen = cast(equal(x, node.outputs[0]), x.dtype());
    const Symbol shares = add_node(std::make_shared<ReduceOp>(Kind::sum, begin_, end_), {chosen});
    return {multiply(chosen, divide_no_nan(dy[0], shares))};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& x = types.inputs[0].shape;
    const Span3 shape{product(x, 0, begin_), product(x, begin_, end_), product(x, end_, x.size())};
    const double scale = kind_ == Kind::mean ? reciprocal_of(shape.reduced) : 1;
    return numeric_kernel(types.inputs[0].dtype, [kind = kind_, shape, scale]<class T>(Tag<T>, const KernelArguments& arguments) {
      if (kind == Kind::max) {
        run<T, MaxOf>(arguments, shape, scale);
      } else if (kind == Kind::min) {
        run<T, MinOf>(arguments, shape, scale);
      } else {
        run<T, SumOf>(arguments, shape, scale);
      }
    });
  }
  // Of equal size only where each element is a result.
  bool may_overwrite(size_t) const override { return true; }

 private:
  Kind kind_;
  size_t begin_;
  size_t end_;
};

/// Groups of adjacent axes one after the other, the last first; the same order for every caller.
Symbol reduce(Kind kind, Symbol x, std::vector<int64_t> axes, bool keepdims) {
  axes = axes_of(kind_names[static_cast<size_t>(kind)], std::move(axes), x);
  Shape result;
  for (size_t i = 0, a = 0; i < x.shape().size(); ++i) {
    if (a < axes.size() && axes[a] == static_cast<int64_t>(i)) {
      if (keepdims) result.push_back(1);
      ++a;
    } else {
      result.push_back(x.shape()[i]);
    }
  }
  size_t end = axes.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && axes[begin - 1] == axes[begin] - 1) --begin;
    x = add_node(std::make_shared<ReduceOp>(kind, static_cast<size_t>(axes[begin]), static_cast<size_t>(axes[end - 1]) + 1), {x});
    end = begin;
  }
  return keepdims || axes.empty() ? x : reshape(x, std::move(result));
}

/// The sum of all rows as one row, or the rows as they are: as many as `rows` says. One node either way, since a replica with one row must run the
/// same nodes as one with many.
class RowsToOp final : public Op {
 public:
  explicit RowsToOp(int64_t rows) : rows_(rows) {}
  std::string_view name() const override { return "rows_to"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(name(), inputs[0]);
    TensorType result = inputs[0];
    result.shape[0] = rows_;
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override { return {broadcast_to(dy[0], node.inputs[0].shape())}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& x = types.inputs[0].shape;
    const bool as_they_are = x[0] == rows_;
    const Span3 shape{1, as_they_are ? 1 : x[0], product(x, as_they_are ? 0 : 1, x.size())};
    return floating_kernel(types.inputs[0].dtype, [shape]<class T>(Tag<T>, const KernelArguments& arguments) { run<T, SumOf>(arguments, shape, 1); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  int64_t rows_;
};

template <class T>
void run_argmax(const KernelArguments& arguments, int64_t rows, int64_t size) {
  using C = Wide<T>;
  const T* x = input_of<T>(arguments, 0);
  int64_t* y = output_of<int64_t>(arguments);
  launch(arguments, rows, [=] LOCKSTEP_HD(int64_t row) {
    const T* from = x + row * size;
    int64_t best = 0;
    for (int64_t j = 1; j < size; ++j) {
      if (static_cast<C>(from[j]) > static_cast<C>(from[best])) best = j;
    }
    y[row] = best;
  });
}

/// Over the last axis, which goes.
class ArgmaxOp final : public Op {
 public:
  std::string_view name() const override { return "argmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_numeric(name(), inputs[0]);
    TensorType result{DType::i64, inputs[0].shape};
    if (result.shape.back() == 0) throw shape_error(name(), fmt::format("the axis of shape {} is empty", text_of(result.shape)));
    result.shape.pop_back();
    return {result};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return numeric_kernel(types.inputs[0].dtype, [rows = types.outputs[0].elements(), size = types.inputs[0].shape.back()]<class T>(Tag<T>, const KernelArguments& arguments) { run_argmax<T>(arguments, rows, size); });
  }
};

}  // namespace

Symbol sum(Symbol x, std::vector<int64_t> axes, bool keepdims) { return reduce(Kind::sum, x, std::move(axes), keepdims); }
Symbol mean(Symbol x, std::vector<int64_t> axes, bool keepdims) { return reduce(Kind::mean, x, std::move(axes), keepdims); }
Symbol max(Symbol x, std::vector<int64_t> axes, bool keepdims) { return reduce(Kind::max, x, std::move(axes), keepdims); }
Symbol min(Symbol x, std::vector<int64_t> axes, bool keepdims) { return reduce(Kind::min, x, std::move(axes), keepdims); }

Symbol argmax(Symbol x, int64_t axis) {
  axis = axis_of("argmax", axis, x);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < static_cast<int64_t>(x.shape().size()); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  const bool last = axis + 1 == static_cast<int64_t>(x.shape().size());
  return add_node(std::make_shared<ArgmaxOp>(), {last ? x : transpose(x, order)});
}

Symbol sum_to(Symbol x, Shape shape) {
  const Shape wide = x.shape();
  if (shape.size() > wide.size() || broadcast_shape("sum_to", wide, shape) != wide) throw shape_error(x, "sum_to", fmt::format("{} does not stretch to {}", text_of(shape), text_of(wide)));
  const size_t added = wide.size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < wide.size(); ++i) {
    if (i < added || (i > 0 && shape[i - added] == 1 && wide[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  if (!axes.empty()) x = sum(x, axes, true);
  if (added > 0) return reshape(x, std::move(shape));
  return shape.empty() ? x : add_node(std::make_shared<RowsToOp>(shape[0]), {x});
}

}  // namespace lockstep::ops
