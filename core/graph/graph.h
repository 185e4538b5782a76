#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

class Graph;
class Op;

/// A value of a graph while it is traced: a type, and where it comes from. Cheap to copy; lives as long as its graph.
class Symbol {
 public:
  Symbol() = default;
  Symbol(Graph* graph, int id) : graph_(graph), id_(id) {}

  bool valid() const { return graph_ != nullptr; }
  explicit operator bool() const { return valid(); }
  Graph& graph() const { return *graph_; }
  int id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  /// Size of the last axis.
  int64_t last() const { return shape().back(); }
  bool operator==(const Symbol&) const = default;

 private:
  Graph* graph_ = nullptr;
  int id_ = -1;
};

/// A named tensor that outlives a step: a weight, a moving statistic, a counter.
struct Variable {
  std::string path;  ///< layer's path, "/", Keras's name: "tower/hidden/kernel"
  TensorType type;
  bool trainable = true;
};

/// One replica's computation of one step, for one count of rows: what the warm-up traces, differentiates and compiles. Nodes are in an order in
/// which they can run. Graphs of the same model with other counts of rows have the same nodes in the same order.
class Graph {
 public:
  enum class Origin { node, input, variable, constant, replica_index };

  struct Node {
    std::shared_ptr<const Op> op;
    std::vector<int> inputs;   ///< value ids
    std::vector<int> outputs;  ///< value ids
    std::string layer;         ///< path of the layer that made it; empty for losses and the like
  };
  struct ValueInfo {
    TensorType type;
    Origin origin = Origin::node;
    int node = -1;           ///< for Origin::node
    std::string name;        ///< for inputs: their name; for variables: their path
    Tensor constant;         ///< for constants
  };

  /// A value given at each step.
  Symbol input(std::string name, TensorType type);
  /// The variable's value at the start of the step. The same Symbol for the same path.
  Symbol variable(const Variable& variable);
  Symbol constant(Tensor tensor);
  /// A scalar, or a tensor filled with it.
  Symbol constant(DType dtype, double value, Shape shape = {});
  /// int32 scalar: the number of the replica that runs this graph.
  Symbol replica_index();
  /// Adds a node; its outputs' types come from the op's rule, which throws M-family errors naming the layer.
  std::vector<Symbol> add(std::shared_ptr<const Op> op, std::span<const Symbol> inputs);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueInfo>& values() const { return values_; }
  const ValueInfo& value(int id) const { return values_[static_cast<size_t>(id)]; }

  /// Nodes made from here on belong to this layer; returns the one before.
  std::string set_layer(std::string path);
  const std::string& layer() const { return layer_; }

 private:
  friend class GraphRewriter;
  Symbol add_value(ValueInfo info);

  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::string layer_;
  int replica_index_ = -1;
};

/// Sets the layer of a graph for a scope.
class LayerScope {
 public:
  LayerScope(Graph& graph, std::string path) : graph_(graph), before_(graph.set_layer(std::move(path))) {}
  ~LayerScope() { graph_.set_layer(std::move(before_)); }
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

/// Reverse-mode differentiation: adds nodes that compute, for each of `with_respect_to`, the sum over `outputs` of d(output)/d(it) times
/// `output_gradients`. An invalid Symbol comes back where nothing depends on it.
std::vector<Symbol> differentiate(std::span<const Symbol> outputs, std::span<const Symbol> output_gradients, std::span<const Symbol> with_respect_to);

}  // namespace lockstep
