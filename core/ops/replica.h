#pragma once

#include "core/graph/op.h"

namespace lockstep::ops {

/// The sum of x over all replicas. A program hands it to the communicator for all its replicas together.
class ReplicaSumOp final : public Op {
 public:
  std::string_view name() const override { return "replica_sum"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override;
  /// Throws X07: no kernel of one replica can do it.
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override;
  bool crosses_replicas() const override { return true; }
};

}  // namespace lockstep::ops
