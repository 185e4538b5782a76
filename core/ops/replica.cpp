#include "core/ops/replica.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

std::vector<TensorType> ReplicaSumOp::infer(std::span<const TensorType> inputs) const {
  expect_numeric(name(), inputs[0]);
  return {inputs[0]};
}

// Each replica's x is in every replica's sum.
std::vector<Symbol> ReplicaSumOp::gradient(const NodeView&, std::span<const Symbol> dy) const { return {replica_sum(dy[0])}; }

std::unique_ptr<Kernel> ReplicaSumOp::kernel(const NodeTypes&) const { throw Error("X07", "", "a sum over replicas has no kernel of its own; the program runs it through the communicator"); }

namespace {

/// The values of a tensor where the host can read them.
class HostCopy {
 public:
  explicit HostCopy(size_t bytes) : bytes_(bytes) {}
  std::span<const std::byte> read(const KernelArguments& arguments) {
#if defined(__CUDACC__)
    if (arguments.stream) {
      copy_.resize(bytes_);
      cudaMemcpyAsync(copy_.data(), arguments.inputs[0], bytes_, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(arguments.stream));
      cudaStreamSynchronize(static_cast<cudaStream_t>(arguments.stream));
      return copy_;
    }
#endif
    return {static_cast<const std::byte*>(arguments.inputs[0]), bytes_};
  }

 private:
  size_t bytes_;
  std::vector<std::byte> copy_;
};

/// An identity that also tells the step something.
class EffectOp : public Op {
 public:
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const final { return {inputs[0]}; }
  std::vector<Symbol> gradient(const NodeView&, std::span<const Symbol> dy) const final { return {dy[0]}; }
  bool may_overwrite(size_t) const final { return true; }
  bool has_effect() const final { return true; }
};

class PrintOp final : public EffectOp {
 public:
  PrintOp(std::string message, int64_t every_steps) : message_(std::move(message)), every_steps_(every_steps) {}
  std::string_view name() const override { return "print"; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return make_kernel([message = message_, every_steps = every_steps_, layer = types.layer, bytes = types.inputs[0].bytes()](const KernelArguments& arguments) {
      StepContext& step = *arguments.step;
      const ReplicaContext& replica = *arguments.replica;
      if (step.warm_up || step.step % every_steps == 0) step.printed.push_back({replica.replica, layer, filled(message, replica, step.step)});
      copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], bytes);
    });
  }

 private:
  static std::string filled(const std::string& message, const ReplicaContext& replica, int64_t step) {
    const std::array<std::pair<std::string_view, int64_t>, 4> values = {{{"{replica}", replica.replica}, {"{replicas}", replica.replicas}, {"{rank}", replica.rank}, {"{step}", step}}};
    std::string text;
    for (size_t i = 0; i < message.size();) {
      bool found = false;
      for (const auto& [name, value] : values) {
        if (message.compare(i, name.size(), name) != 0) continue;
        text += fmt::format("{}", value);
        i += name.size();
        found = true;
        break;
      }
      if (!found) text += message[i++];
    }
    return text;
  }

  std::string message_;
  int64_t every_steps_;
};

class LivenessProbeOp final : public EffectOp {
 public:
  explicit LivenessProbeOp(std::string layer) : layer_(std::move(layer)) {}
  std::string_view name() const override { return "liveness_probe"; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const TensorType& type = types.inputs[0];
    return make_kernel([layer = layer_, type, copy = HostCopy(type.bytes())](const KernelArguments& arguments) mutable {
      const ReplicaContext& replica = *arguments.replica;
      arguments.step->records.push_back({replica.replica, replica.rank, replica.device, layer, type, hash_of(copy.read(arguments))});
      copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], type.bytes());
    });
  }

 private:
  std::string layer_;
};

}  // namespace

Symbol replica_sum(Symbol x) { return add_node(std::make_shared<ReplicaSumOp>(), {x}); }

Symbol print(Symbol x, std::string message, int64_t every_steps) {
  if (every_steps < 1) throw shape_error("print", fmt::format("every_steps is {}; expected 1 or more", every_steps));
  return add_node(std::make_shared<PrintOp>(std::move(message), every_steps), {x});
}

Symbol liveness_probe(Symbol x, std::string layer) { return add_node(std::make_shared<LivenessProbeOp>(std::move(layer)), {x}); }

}  // namespace lockstep::ops
