#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

struct Equal {
  static constexpr std::string_view name = "equal";
  template <class C>
  LOCKSTEP_HD bool operator()(C a, C b) const { return a == b; }
};
struct NotEqual {
  static constexpr std::string_view name = "not_equal";
  template <class C>
  LOCKSTEP_HD bool operator()(C a, C b) const { return a != b; }
};
struct Less {
  static constexpr std::string_view name = "less";
  template <class C>
  LOCKSTEP_HD bool operator()(C a, C b) const { return a < b; }
};
struct LessEqual {
  static constexpr std::string_view name = "less_equal";
  template <class C>
  LOCKSTEP_HD bool operator()(C a, C b) const { return a <= b; }
};
struct LogicalAnd {
  static constexpr std::string_view name = "logical_and";
  LOCKSTEP_HD bool operator()(bool a, bool b) const { return a && b; }
};
struct LogicalOr {
  static constexpr std::string_view name = "logical_or";
  LOCKSTEP_HD bool operator()(bool a, bool b) const { return a || b; }
};

template <class T, class Formula>
void run(const KernelArguments& arguments, const StridedLoop<3>& loop, Formula formula) {
  using C = Wide<T>;
  const T* first_a = input_of<T>(arguments, 0);
  const T* first_b = input_of<T>(arguments, 1);
  bool* first_y = output_of<bool>(arguments);
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
    bool* y = first_y + loop.offset(2, row) + begin;
    for (int64_t j = 0; j < count; ++j) y[j] = formula(static_cast<C>(a[j * step_a]), static_cast<C>(b[j * step_b]));
  });
}

StridedLoop<3> loop_of(std::string_view op, const NodeTypes& types) {
  const Shape& sizes = types.outputs[0].shape;
  return strided_loop<3>(op, sizes, {broadcast_strides(types.inputs[0].shape, sizes), broadcast_strides(types.inputs[1].shape, sizes), row_major_strides(sizes)});
}

/// No gradient flows through comparisons.
template <class Formula>
class CompareOp final : public Op {
 public:
  std::string_view name() const override { return Formula::name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_same_dtype(name(), inputs[0], inputs[1]);
    return {{DType::boolean, broadcast_shape(name(), inputs[0].shape, inputs[1].shape)}};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return any_kernel(types.inputs[0].dtype, [loop = loop_of(name(), types)]<class T>(Tag<T>, const KernelArguments& arguments) { run<T>(arguments, loop, Formula{}); });
  }
};

template <class Formula>
class LogicalOp final : public Op {
 public:
  std::string_view name() const override { return Formula::name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    for (const TensorType& type : inputs) {
      if (type.dtype != DType::boolean) throw dtype_error(name(), "expected bool values, found " + type.text());
    }
    return {{DType::boolean, broadcast_shape(name(), inputs[0].shape, inputs[1].shape)}};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return make_kernel([loop = loop_of(name(), types)](const KernelArguments& arguments) { run<bool>(arguments, loop, Formula{}); });
  }
};

}  // namespace

Symbol equal(Symbol a, Symbol b) { return add_node(std::make_shared<CompareOp<Equal>>(), {a, b}); }
Symbol not_equal(Symbol a, Symbol b) { return add_node(std::make_shared<CompareOp<NotEqual>>(), {a, b}); }
Symbol less(Symbol a, Symbol b) { return add_node(std::make_shared<CompareOp<Less>>(), {a, b}); }
Symbol less_equal(Symbol a, Symbol b) { return add_node(std::make_shared<CompareOp<LessEqual>>(), {a, b}); }
Symbol greater(Symbol a, Symbol b) { return less(b, a); }
Symbol greater_equal(Symbol a, Symbol b) { return less_equal(b, a); }
Symbol logical_and(Symbol a, Symbol b) { return add_node(std::make_shared<LogicalOp<LogicalAnd>>(), {a, b}); }
Symbol logical_or(Symbol a, Symbol b) { return add_node(std::make_shared<LogicalOp<LogicalOr>>(), {a, b}); }
Symbol logical_not(Symbol a) { return equal(a, a.graph().constant(DType::boolean, 0)); }

}  // namespace lockstep::ops
