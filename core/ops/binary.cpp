#include <cmath>

#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

// Formulas: the value, and what flows to each argument for a gradient dy of the result y.

struct Add {
  static constexpr std::string_view name = "add";
  static constexpr bool of_integers = true;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a + b; }
  static Symbol to_a(Symbol, Symbol, Symbol, Symbol dy) { return dy; }
  static Symbol to_b(Symbol, Symbol, Symbol, Symbol dy) { return dy; }
};

struct Subtract {
  static constexpr std::string_view name = "subtract";
  static constexpr bool of_integers = true;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a - b; }
  static Symbol to_a(Symbol, Symbol, Symbol, Symbol dy) { return dy; }
  static Symbol to_b(Symbol, Symbol, Symbol, Symbol dy) { return negative(dy); }
};

struct Multiply {
  static constexpr std::string_view name = "multiply";
  static constexpr bool of_integers = true;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a * b; }
  static Symbol to_a(Symbol, Symbol b, Symbol, Symbol dy) { return multiply(dy, b); }
  static Symbol to_b(Symbol a, Symbol, Symbol, Symbol dy) { return multiply(dy, a); }
};

struct Divide {
  static constexpr std::string_view name = "divide";
  static constexpr bool of_integers = false;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a / b; }
  static Symbol to_a(Symbol, Symbol b, Symbol, Symbol dy) { return divide(dy, b); }
  static Symbol to_b(Symbol, Symbol b, Symbol y, Symbol dy) { return negative(multiply(dy, divide(y, b))); }
};

struct DivideNoNan {
  static constexpr std::string_view name = "divide_no_nan";
  static constexpr bool of_integers = false;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return b == 0 ? C(0) : a / b; }
  static Symbol to_a(Symbol, Symbol b, Symbol, Symbol dy) { return divide_no_nan(dy, b); }
  static Symbol to_b(Symbol, Symbol b, Symbol y, Symbol dy) { return negative(multiply(dy, divide_no_nan(y, b))); }
};

struct Power {
  static constexpr std::string_view name = "power";
  static constexpr bool of_integers = false;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return std::pow(a, b); }
  static Symbol to_a(Symbol a, Symbol b, Symbol, Symbol dy) { return multiply(dy, multiply(b, power(a, add(b, -1.0)))); }
  // log(a) only where a > 0: elsewhere a^b is constant in b (0), or not defined beside whole b.
  static Symbol to_b(Symbol a, Symbol, Symbol y, Symbol dy) {
    const Symbol zero = a.graph().constant(a.dtype(), 0);
    const Symbol one = a.graph().constant(a.dtype(), 1);
    const Symbol positive = greater(a, zero);
    return multiply(dy, multiply(y, where(positive, log(where(positive, a, one)), zero)));
  }
};

/// `mask(condition)` as numbers.
Symbol as_numbers(Symbol condition, DType dtype) { return cast(condition, dtype); }

/// Where the arguments are equal, the gradient is a's; NaN spreads.
struct Maximum {
  static constexpr std::string_view name = "maximum";
  static constexpr bool of_integers = true;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a >= b || a != a ? a : b; }
  static Symbol to_a(Symbol a, Symbol b, Symbol, Symbol dy) { return multiply(dy, as_numbers(greater_equal(a, b), dy.dtype())); }
  static Symbol to_b(Symbol a, Symbol b, Symbol, Symbol dy) { return multiply(dy, as_numbers(less(a, b), dy.dtype())); }
};

struct Minimum {
  static constexpr std::string_view name = "minimum";
  static constexpr bool of_integers = true;
  template <class C>
  LOCKSTEP_HD C operator()(C a, C b) const { return a <= b || a != a ? a : b; }
  static Symbol to_a(Symbol a, Symbol b, Symbol, Symbol dy) { return multiply(dy, as_numbers(less_equal(a, b), dy.dtype())); }
  static Symbol to_b(Symbol a, Symbol b, Symbol, Symbol dy) { return multiply(dy, as_numbers(greater(a, b), dy.dtype())); }
};

template <class T, class Formula>
void run(const KernelArguments& arguments, const StridedLoop<3>& loop, Formula formula) {
  using C = Wide<T>;
  const T* first_a = input_of<T>(arguments, 0);
  const T* first_b = input_of<T>(arguments, 1);
  T* first_y = output_of<T>(arguments);
  const int64_t inner = loop.inner();
  const int64_t chunk = chunk_of(arguments, inner, inner);
  const int64_t chunks = inner > 0 ? (inner + chunk - 1) / chunk : 0;
  launch(arguments, loop.outer() * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t row = i / chunks;
    const int64_t begin = i % chunks * chunk;
    const int64_t count = begin + chunk < inner ? chunk : inner - begin;
    const int64_t step_a = loop.step(0);
    const int64_t step_b = loop.step(1);
    const T* a = first_a + loop.offset(0, row) + begin * step_a;
    const T* b = first_b + loop.offset(1, row) + begin * step_b;
    T* y = first_y + loop.offset(2, row) + begin;
    if (step_a == 1 && step_b == 1) {
      for (int64_t j = 0; j < count; ++j) y[j] = static_cast<T>(formula(static_cast<C>(a[j]), static_cast<C>(b[j])));
    } else if (step_b == 0 && step_a == 1) {
      const C one = static_cast<C>(*b);
      for (int64_t j = 0; j < count; ++j) y[j] = static_cast<T>(formula(static_cast<C>(a[j]), one));
    } else {
      // Inner axes that stretch both are merged away or of size 1.
      const C one = static_cast<C>(*a);
      for (int64_t j = 0; j < count; ++j) y[j] = static_cast<T>(formula(one, static_cast<C>(b[j * step_b])));
    }
  });
}

template <class Formula>
class BinaryOp final : public Op {
 public:
  std::string_view name() const override { return Formula::name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_same_dtype(name(), inputs[0], inputs[1]);
    if (Formula::of_integers) {
      expect_numeric(name(), inputs[0]);
    } else {
      expect_floating(name(), inputs[0]);
    }
    return {{inputs[0].dtype, broadcast_shape(name(), inputs[0].shape, inputs[1].shape)}};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    const Symbol a = node.inputs[0];
    const Symbol b = node.inputs[1];
    if (!is_floating(a.dtype())) return {Symbol(), Symbol()};
    return {sum_to(Formula::to_a(a, b, node.outputs[0], dy[0]), a.shape()), sum_to(Formula::to_b(a, b, node.outputs[0], dy[0]), b.shape())};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& sizes = types.outputs[0].shape;
    const StridedLoop<3> loop = strided_loop<3>(name(), sizes, {broadcast_strides(types.inputs[0].shape, sizes), broadcast_strides(types.inputs[1].shape, sizes), row_major_strides(sizes)});
    const auto run_it = [loop]<class T>(Tag<T>, const KernelArguments& arguments) { run<T>(arguments, loop, Formula{}); };
    if constexpr (Formula::of_integers) {
      return numeric_kernel(types.inputs[0].dtype, run_it);
    } else {
      return floating_kernel(types.inputs[0].dtype, run_it);
    }
  }
  // A broadcast argument is of another shape than the result, so places stay apart.
  bool may_overwrite(size_t) const override { return true; }
};

template <class Formula>
Symbol binary(Symbol a, Symbol b) {
  return add_node(std::make_shared<BinaryOp<Formula>>(), {a, b});
}

}  // namespace

Symbol add(Symbol a, Symbol b) { return binary<Add>(a, b); }
Symbol subtract(Symbol a, Symbol b) { return binary<Subtract>(a, b); }
Symbol multiply(Symbol a, Symbol b) { return binary<Multiply>(a, b); }
Symbol divide(Symbol a, Symbol b) { return binary<Divide>(a, b); }
Symbol divide_no_nan(Symbol a, Symbol b) { return binary<DivideNoNan>(a, b); }
Symbol power(Symbol a, Symbol b) { return binary<Power>(a, b); }
Symbol maximum(Symbol a, Symbol b) { return binary<Maximum>(a, b); }
Symbol minimum(Symbol a, Symbol b) { return binary<Minimum>(a, b); }

Symbol add(Symbol a, double b) { return add(a, a.graph().constant(a.dtype(), b)); }
Symbol multiply(Symbol a, double b) { return multiply(a, a.graph().constant(a.dtype(), b)); }
Symbol clip(Symbol x, double low, double high) {
  return minimum(maximum(x, x.graph().constant(x.dtype(), low)), x.graph().constant(x.dtype(), high));
}

}  // namespace lockstep::ops
