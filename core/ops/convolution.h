#pragma once

#include <memory>

#include "core/graph/op.h"
#include "core/ops/ops.h"

namespace lockstep::ops {

/// Window and groups of a convolution of x (n, h, w, c) with a kernel (kh, kw, c / groups, f). Group g reads channels [g c / groups, ...) and makes
/// filters [g f / groups, ...).
struct Convolution {
  Window2D window;
  int64_t groups = 1;
};

/// x, kernel -> y (n, oh, ow, f).
class Conv2dOp final : public Op {
 public:
  explicit Conv2dOp(Convolution convolution) : convolution(convolution) {}
  std::string_view name() const override { return "conv2d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const Convolution convolution;
};

/// dy, kernel -> dx of shape `x`.
class Conv2dInputGradientOp final : public Op {
 public:
  Conv2dInputGradientOp(Convolution convolution, Shape x) : convolution(convolution), x_shape(std::move(x)) {}
  std::string_view name() const override { return "conv2d_input_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const Convolution convolution;
  const Shape x_shape;
};

/// x, dy -> dkernel of shape `kernel`.
class Conv2dKernelGradientOp final : public Op {
 public:
  Conv2dKernelGradientOp(Convolution convolution, Shape kernel) : convolution(convolution), kernel_shape(std::move(kernel)) {}
  std::string_view name() const override { return "conv2d_kernel_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const Convolution convolution;
  const Shape kernel_shape;
};

/// x (n, h, w, c) -> (n, oh, ow, c).
class MaxPool2dOp final : public Op {
 public:
  explicit MaxPool2dOp(Window2D window) : window(window) {}
  std::string_view name() const override { return "max_pool2d"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const Window2D window;
};

}  // namespace lockstep::ops
