#pragma once

#include <memory>

#include "core/graph/op.h"

namespace lockstep::ops {

enum class Activation { none,
                        relu };

/// y = activation(x kernel + bias) over the last axis: x (..., k), kernel (k, m), or (m, k) when it is transposed, bias (m) if there is a third
/// input -> (..., m).
class DenseOp final : public Op {
 public:
  explicit DenseOp(bool kernel_transposed, Activation activation = Activation::none) : kernel_transposed(kernel_transposed), activation(activation) {}

  std::string_view name() const override { return activation == Activation::relu ? "dense_relu" : "dense"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const bool kernel_transposed;
  const Activation activation;
};

/// The same product with relu(x), as ops::relu computes it without further arguments, in the same pass; null when `dense` is no DenseOp or has an
/// activation already.
std::shared_ptr<const Op> fused_with_relu(const Op& dense);
/// True for the op that ops::relu(x) adds, and for no other.
bool is_plain_relu(const Op& op);

/// (..., n, k) x (..., k, m) -> (..., n, m); leading axes broadcast.
class MatmulOp final : public Op {
 public:
  MatmulOp(bool transpose_a, bool transpose_b) : transpose_a(transpose_a), transpose_b(transpose_b) {}

  std::string_view name() const override { return "matmul"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;

  const bool transpose_a;
  const bool transpose_b;
};

}  // namespace lockstep::ops
