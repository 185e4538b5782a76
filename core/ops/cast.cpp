#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

namespace {

/// By value, as numpy's astype: floats to integers truncate.
template <class To, class From>
LOCKSTEP_HD To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Wide<From>>(value) != Wide<From>{};
  } else {
    return static_cast<To>(static_cast<Wide<To>>(static_cast<Wide<From>>(value)));
  }
}

template <class From, class To>
void run(const KernelArguments& arguments, int64_t count) {
  const From* x = input_of<From>(arguments, 0);
  To* y = output_of<To>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) { y[i] = converted<To>(x[i]); });
}

template <class From>
std::unique_ptr<Kernel> kernel_from(DType to, int64_t count) {
  return any_kernel(to, [count]<class To>(Tag<To>, const KernelArguments& arguments) { run<From, To>(arguments, count); });
}

/// The gradient is cast back; none flows to or from integers.
class CastOp final : public Op {
 public:
  explicit CastOp(DType dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "cast"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {{dtype_, inputs[0].shape}}; }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    const DType from = node.inputs[0].dtype();
    if (!is_floating(from) || !is_floating(dtype_)) return {Symbol()};
    return {cast(dy[0], from)};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    std::unique_ptr<Kernel> result;
    visit_any(types.inputs[0].dtype, [&]<class From>(Tag<From>) { result = kernel_from<From>(dtype_, types.inputs[0].elements()); });
    return result;
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  DType dtype_;
};

/// The same values; what keeps a gradient from flowing is a name of its own.
class IdentityOp final : public Op {
 public:
  explicit IdentityOp(bool differentiable) : differentiable_(differentiable) {}
  std::string_view name() const override { return differentiable_ ? "identity" : "stop_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Symbol> gradient(const NodeView&, std::span<const Symbol> dy) const override { return {differentiable_ ? dy[0] : Symbol()}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return make_kernel([bytes = types.inputs[0].bytes()](const KernelArguments& arguments) { copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], bytes); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  bool differentiable_;
};

}  // namespace

Symbol cast(Symbol x, DType dtype) { return x.dtype() == dtype ? x : add_node(std::make_shared<CastOp>(dtype), {x}); }
Symbol stop_gradient(Symbol x) { return add_node(std::make_shared<IdentityOp>(false), {x}); }
Symbol identity(Symbol x) { return add_node(std::make_shared<IdentityOp>(true), {x}); }

}  // namespace lockstep::ops
