#include "core/program/program.h"

#include <cstring>
#include <map>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/onednn/onednn.h"

namespace lockstep {

struct Program::Compiled {
  Plan plan;
  std::vector<std::unique_ptr<Kernel>> kernels;  // by call; null for sums over replicas
};

namespace {

PlanRequest request_of(const ReplicaPart& part) {
  PlanRequest request;
  for (const ReplicaPart::Memory& target : part.targets) request.targets.push_back(target.value);
  request.kept = part.kept;
  for (const TracedStep::Input& input : part.step->inputs) request.inputs.push_back(input.value.id());
  return request;
}

/// The value made by a copy has its source's type.
const TensorType& type_of(const Graph& graph, const PlannedCall& call, int id) {
  return graph.value(id < static_cast<int>(graph.values().size()) ? id : call.inputs[0]).type;
}

std::unique_ptr<Kernel> copy_kernel(size_t bytes) {
  return make_kernel([bytes](const KernelArguments& arguments) { std::memcpy(arguments.outputs[0], arguments.inputs[0], bytes); });
}

}  // namespace

Program::Program(std::vector<ReplicaPart> parts, Communicator& communicator, const Replicas& replicas, StepContext& step) : parts_(std::move(parts)), step_(step) {
  compile(communicator, replicas);
}

void Program::compile(Communicator& communicator, const Replicas& replicas) {
  std::map<const TracedStep*, std::shared_ptr<Compiled>> by_step;
  size_t arena_bytes = 0;
  replica_index_.resize(parts_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    const ReplicaPart& part = parts_[p];
    replica_index_[p] = part.context.replica;
    std::shared_ptr<Compiled>& compiled = by_step[part.step.get()];
    if (!compiled) {
      compiled = std::make_shared<Compiled>();
      const Graph& graph = *part.step->graph;
      compiled->plan = plan_graph(graph, request_of(part));
      for (const PlannedCall& call : compiled->plan.calls) {
        if (!call.op) {
          compiled->kernels.push_back(copy_kernel(type_of(graph, call, call.outputs[0]).bytes()));
          continue;
        }
        if (call.op->crosses_replicas()) {
          compiled->kernels.push_back(nullptr);
          continue;
        }
        NodeTypes types;
        types.layer = call.layer;
        for (const int id : call.inputs) types.inputs.push_back(type_of(graph, call, id));
        for (const int id : call.outputs) types.outputs.push_back(type_of(graph, call, id));
        std::unique_ptr<Kernel> kernel = onednn_kernel(*call.op, types);
        compiled->kernels.push_back(kernel ? std::move(kernel) : call.op->kernel(types));
      }
    }
    compiled_.push_back(compiled);
    arena_begin_.push_back(arena_bytes);
    arena_bytes += compiled->plan.arena_bytes;
  }
  arena_ = Tensor({DType::u8, {static_cast<int64_t>(arena_bytes)}});

  const size_t count = compiled_.empty() ? 0 : compiled_[0]->plan.calls.size();
  for (const auto& compiled : compiled_) {
    if (compiled->plan.calls.size() != count) throw Error("X04", "", fmt::format("replicas of one step compile to {} and {} calls; their graphs should be the same", count, compiled->plan.calls.size()));
  }
  for (size_t c = 0; c < count; ++c) {
    ReplicaSum* sum = nullptr;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const PlannedCall& planned = compiled_[p]->plan.calls[c];
      Call& call = calls_.emplace_back();
      for (const int id : planned.inputs) call.inputs.push_back(memory_of(p, id));
      for (const int id : planned.outputs) call.outputs.push_back(memory_of(p, id));
      if (planned.op && planned.op->crosses_replicas()) {
        const TensorType& type = parts_[p].step->graph->value(planned.inputs[0]).type;
        if (!sum) {
          sums_.push_back(communicator.make_replica_sum(type.dtype, type.elements(), replicas));
          sum = sums_.back().get();
        }
        call.sum = sum;
        call.bytes = type.bytes();
        continue;
      }
      call.kernel = compiled_[p]->kernels[c].get();
    }
  }
  size_t index = 0;
  for (size_t c = 0; c < count; ++c) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      Call& call = calls_[index++];
      call.arguments = {call.inputs.data(), call.outputs.data(), &parts_[p].context, &step_, nullptr};
    }
  }
}

void* Program::memory_of(size_t part, int value) const {
  const Placement& placement = compiled_[part]->plan.placements[static_cast<size_t>(value)];
  const ReplicaPart& p = parts_[part];
  auto* arena = const_cast<std::byte*>(arena_.bytes().data());
  switch (placement.where) {
    case Placement::Where::arena: return arena + arena_begin_[part] + placement.offset;
    case Placement::Where::target: return p.targets[static_cast<size_t>(placement.target)].memory;
    case Placement::Where::unused:
    case Placement::Where::outside: break;
  }
  const Graph::ValueInfo& info = p.step->graph->value(value);
  if (info.origin == Graph::Origin::constant) return const_cast<std::byte*>(info.constant.bytes().data());
  if (info.origin == Graph::Origin::replica_index) return const_cast<int32_t*>(&replica_index_[part]);
  for (const ReplicaPart::Memory& variable : p.variables) {
    if (variable.value == value) return variable.memory;
  }
  throw Error("X05", info.name, "a program reads a value that has no memory");
}

void Program::run() {
  for (const Call& call : calls_) {
    if (call.kernel) {
      call.kernel->run(call.arguments);
    } else {
      run_sum(call);
    }
  }
}

/// The first replica's call of a sum runs it for all: every local replica has come to it, since calls go op by op.
void Program::run_sum(const Call& call) {
  if (call.arguments.replica != &parts_[0].context) return;
  const Call* calls = &call;
  for (size_t p = 0; p < parts_.size(); ++p) std::memcpy(call.sum->contribution(static_cast<int>(p)).data(), calls[p].inputs[0], call.bytes);
  const std::span<const std::byte> result = call.sum->run();
  for (size_t p = 0; p < parts_.size(); ++p) std::memcpy(calls[p].outputs[0], result.data(), call.bytes);
}

std::span<std::byte> Program::input(size_t part, size_t i) const {
  const Symbol& symbol = parts_[part].step->inputs[i].value;
  return {static_cast<std::byte*>(memory_of(part, symbol.id())), symbol.type().bytes()};
}

std::span<const std::byte> Program::value(size_t part, int id) const {
  return {static_cast<const std::byte*>(memory_of(part, id)), parts_[part].step->graph->value(id).type.bytes()};
}

}  // namespace lockstep
