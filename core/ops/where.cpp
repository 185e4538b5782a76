#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

template <class T>
void run(const KernelArguments& arguments, const StridedLoop<4>& loop) {
  const bool* first_condition = input_of<bool>(arguments, 0);
  const T* first_a = input_of<T>(arguments, 1);
  const T* first_b = input_of<T>(arguments, 2);
  T* first_y = output_of<T>(arguments);
  const int64_t inner = loop.inner();
  const int64_t chunk = chunk_of(arguments, inner, inner);
  const int64_t chunks = inner > 0 ? (inner + chunk - 1) / chunk : 0;
  launch(arguments, loop.outer() * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t row = i / chunks;
    const int64_t begin = i % chunks * chunk;
    const int64_t count = begin + chunk < inner ? chunk : inner - begin;
    const int64_t step_condition = loop.step(0);
    const int64_t step_a = loop.step(1);
    const int64_t step_b = loop.step(2);
    const bool* condition = first_condition + loop.offset(0, row) + begin * step_condition;
    const T* a = first_a + loop.offset(1, row) + begin * step_a;
    const T* b = first_b + loop.offset(2, row) + begin * step_b;
    T* y = first_y + loop.offset(3, row) + begin;
    for (int64_t j = 0; j < count; ++j) y[j] = condition[j * step_condition] ? a[j * step_a] : b[j * step_b];
  });
}

class WhereOp final : public Op {
 public:
  std::string_view name() const override { return "where"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs[0].dtype != DType::boolean) throw dtype_error(name(), "expected a bool condition, found " + inputs[0].text());
    expect_same_dtype(name(), inputs[1], inputs[2]);
    return {{inputs[1].dtype, broadcast_shape(name(), inputs[0].shape, broadcast_shape(name(), inputs[1].shape, inputs[2].shape))}};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    if (!is_floating(node.outputs[0].dtype())) return {Symbol(), Symbol(), Symbol()};
    // Selected, not multiplied: what was not chosen may be infinite.
    const Symbol zero = node.graph.constant(dy[0].dtype(), 0);
    return {Symbol(), sum_to(where(node.inputs[0], dy[0], zero), node.inputs[1].shape()), sum_to(where(node.inputs[0], zero, dy[0]), node.inputs[2].shape())};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& sizes = types.outputs[0].shape;
    const StridedLoop<4> loop = strided_loop<4>(name(), sizes, {broadcast_strides(types.inputs[0].shape, sizes), broadcast_strides(types.inputs[1].shape, sizes), broadcast_strides(types.inputs[2].shape, sizes), row_major_strides(sizes)});
    return moving_kernel(types.outputs[0].dtype, [loop]<class T>(Tag<T>, const KernelArguments& arguments) { run<T>(arguments, loop); });
  }
  bool may_overwrite(size_t input) const override { return input > 0; }
};

}  // namespace

Symbol where(Symbol condition, Symbol a, Symbol b) { return add_node(std::make_shared<WhereOp>(), {condition, a, b}); }

}  // namespace lockstep::ops
