#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/graph/op.h"
#include "core/program/plan.h"
#include "core/trainer/traced_step.h"

namespace lockstep {

/// One replica's part of a program: its traced step and the memory around it.
struct ReplicaPart {
  std::shared_ptr<const TracedStep> step;  ///< replicas with the same rows share it
  ReplicaContext context;
  struct Memory {
    int value = -1;
    void* memory = nullptr;
  };
  std::vector<Memory> variables;  ///< where each variable that the graph reads lives
  std::vector<Memory> targets;    ///< where these values are to be left
  std::vector<int> kept;          ///< values that stay readable after a run
};

/// The flat list of kernel calls made by the warm-up, over one arena: replicas side by side, op by op. A run allocates nothing of ours, walks
/// nothing, looks nothing up.
class Program {
 public:
  /// `step` and the memory given must outlive the program. Sums over replicas go through the communicator. Made and run on one thread.
  Program(std::vector<ReplicaPart> parts, Communicator& communicator, const Replicas& replicas, StepContext& step);

  void run();

  /// Where input i of a local replica's traced step is to be written before a run.
  std::span<std::byte> input(size_t part, size_t i) const;
  /// A kept value after a run.
  std::span<const std::byte> value(size_t part, int id) const;
  const TracedStep& step(size_t part) const { return *parts_[part].step; }
  const ReplicaContext& context(size_t part) const { return parts_[part].context; }
  size_t parts() const { return parts_.size(); }
  size_t arena_bytes() const { return arena_.type().bytes(); }

 private:
  struct Compiled;  // a plan and its kernels, shared by replicas of one shape
  struct Call {
    Kernel* kernel = nullptr;         // null: a sum over replicas
    KernelArguments arguments{};
    ReplicaSum* sum = nullptr;
    size_t bytes = 0;                 // of the sum
    std::vector<const void*> inputs;  // what arguments points into
    std::vector<void*> outputs;
  };
  void* memory_of(size_t part, int value) const;
  void compile(Communicator& communicator, const Replicas& replicas);
  void run_sum(const Call& call);

  std::vector<ReplicaPart> parts_;
  StepContext& step_;
  std::vector<std::shared_ptr<Compiled>> compiled_;  // by part
  std::vector<size_t> arena_begin_;                  // by part
  std::vector<int32_t> replica_index_;               // by part
  Tensor arena_;
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<ReplicaSum>> sums_;
};

}  // namespace lockstep
