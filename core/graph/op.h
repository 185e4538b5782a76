#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/communicator/replicas.h"
#include "core/graph/graph.h"

namespace lockstep {

/// What a kernel may know about the replica that it runs for. Constant in a program.
struct ReplicaContext {
  int replica = 0;
  int replicas = 1;
  int rank = 0;
  Range rows;          ///< the replica's rows in the global batch
  std::string device;  ///< "cpu:0", "cuda:1"
};

/// A line that a Print layer made; the launcher shows them in replica order.
struct PrintedLine {
  int replica = 0;
  std::string layer;
  std::string text;
};

/// Proof that a replica ran, written by a kernel of its program and by nothing else.
struct LivenessRecord {
  int replica = 0;
  int rank = 0;
  std::string device;
  std::string layer;  ///< path of the layer whose output this is
  TensorType type;
  std::string hash;  ///< of the output's bytes
};

/// What a kernel may know about the step. One for a program; the trainer sets it before each run.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;  ///< counted from 0
  bool warm_up = false;
  std::vector<PrintedLine> printed;
  std::vector<LivenessRecord> records;
};

struct KernelArguments {
  const void* const* inputs;
  void* const* outputs;
  const ReplicaContext* replica;
  StepContext* step;
  void* stream;  ///< cudaStream_t on a device; null on the CPU
};

/// One prepared call: its shapes are fixed, its memory comes with each run. Runs allocate nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArguments& arguments) = 0;
};

namespace detail {

template <class Function>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}
  void run(const KernelArguments& arguments) override { function_(arguments); }

 private:
  Function function_;
};

}  // namespace detail

template <class Function>
std::unique_ptr<Kernel> make_kernel(Function function) {
  return std::make_unique<detail::FunctionKernel<Function>>(std::move(function));
}

/// Types of a node's inputs and outputs, for choosing a kernel.
struct NodeTypes {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  std::string layer;  ///< path of the layer that made the node
};

/// A node seen while it is differentiated.
struct NodeView {
  Graph& graph;
  std::span<const Symbol> inputs;
  std::span<const Symbol> outputs;
};

/// A pure function of tensors: shape rule, gradient, reference kernel. Immutable; its attributes are its members.
class Op {
 public:
  virtual ~Op() = default;

  /// "matmul": for messages, profiles and tests.
  virtual std::string_view name() const = 0;
  /// Types of the outputs. Throws Error(M..) that says what was found and expected; the graph adds the layer.
  virtual std::vector<TensorType> infer(std::span<const TensorType> inputs) const = 0;
  /// Adds the nodes of the gradient: one Symbol an input, invalid where none flows (integers, conditions). `output_gradients` holds invalid Symbols
  /// for outputs that nothing differentiable used. The default stops gradients.
  virtual std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> output_gradients) const;
  /// The reference kernel, for the processor or the device. Handles axes of size 0.
  virtual std::unique_ptr<Kernel> kernel(const NodeTypes& types) const = 0;
  /// True when output 0 may take input i's memory: each element is read before it is written, and only by its own place.
  virtual bool may_overwrite(size_t input) const;
  /// True when the result is one over all replicas (ReplicaSum): the program runs it once for them together.
  virtual bool crosses_replicas() const { return false; }
  /// True for what must run though nothing uses its outputs (Print, LivenessProbe).
  virtual bool has_effect() const { return false; }
};

}  // namespace lockstep
