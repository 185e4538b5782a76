#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/ops/kernels.h"
#include "core/ops/rules.h"

/// Functions of one value, applied to each element. A formula is a struct with
///   static constexpr std::string_view name;
///   static constexpr Derivative derivative_of;   what `derivative` takes: the argument, or the result; or that there is none, or that the function is linear
///   template <class C> LOCKSTEP_HD C value(C x) const;
///   template <class C> LOCKSTEP_HD C derivative(C x_or_y) const;
/// and parameters as members. C is float or double.
namespace lockstep::ops {

enum class Derivative { of_argument,
                        of_result,
                        linear,
                        none };

namespace detail {

template <class T, class Formula>
void run_value(const KernelArguments& arguments, int64_t count, Formula formula) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) { y[i] = static_cast<T>(formula.value(static_cast<C>(x[i]))); });
}

template <class T, class Formula>
void run_derivative(const KernelArguments& arguments, int64_t count, Formula formula) {
  using C = ComputeType<T>;
  const T* at = input_of<T>(arguments, 0);
  const T* dy = input_of<T>(arguments, 1);
  T* dx = output_of<T>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) { dx[i] = static_cast<T>(static_cast<C>(dy[i]) * formula.derivative(static_cast<C>(at[i]))); });
}

/// Inputs: the argument or the result, and the gradient of the result.
template <class Formula>
class ElementGradientOp final : public GradientOp {
 public:
  explicit ElementGradientOp(Formula formula) : formula_(formula) {}
  std::string_view name() const override { return Formula::gradient_name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [formula = formula_, count = types.inputs[0].elements()]<class T>(Tag<T>, const KernelArguments& arguments) { run_derivative<T>(arguments, count, formula); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  Formula formula_;
};

template <class Formula>
class ElementOp final : public Op {
 public:
  explicit ElementOp(Formula formula) : formula_(formula) {}
  std::string_view name() const override { return Formula::name; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(Formula::name, inputs[0]);
    return {inputs[0]};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    if constexpr (Formula::derivative_of == Derivative::none) {
      return {Symbol()};
    } else if constexpr (Formula::derivative_of == Derivative::linear) {
      return {add_node(std::make_shared<ElementOp<Formula>>(formula_), {dy[0]})};
    } else {
      const Symbol at = Formula::derivative_of == Derivative::of_result ? node.outputs[0] : node.inputs[0];
      return {add_node(std::make_shared<ElementGradientOp<Formula>>(formula_), {at, dy[0]})};
    }
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [formula = formula_, count = types.inputs[0].elements()]<class T>(Tag<T>, const KernelArguments& arguments) { run_value<T>(arguments, count, formula); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  Formula formula_;
};

}  // namespace detail

template <class Formula>
Symbol apply(Formula formula, Symbol x) {
  return add_node(std::make_shared<detail::ElementOp<Formula>>(formula), {x});
}

}  // namespace lockstep::ops
