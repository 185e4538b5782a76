#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/op.h"
#include "core/ops/ops.h"

/// A plain interpreter of graphs, for tests: nodes in their order, each value in memory of its own.
namespace lockstep {

/// Makes a node's kernel; null leaves the node to the op's reference kernel.
using ChooseKernel = std::function<std::unique_ptr<Kernel>(const Op&, const NodeTypes&)>;

struct Evaluation {
  std::map<std::string, Tensor> feeds;  ///< inputs by name, variables by path
  ReplicaContext replica{};
  StepContext step{};
  ChooseKernel choose{};

  /// The values of `wanted`. Runs every node that they need, and those with effects. A sum over replicas is that of this one alone.
  std::vector<Tensor> run(const Graph& graph, std::span<const Symbol> wanted) {
    std::vector<bool> needed(graph.values().size(), false);
    for (const Symbol& symbol : wanted) needed[static_cast<size_t>(symbol.id())] = true;
    std::vector<bool> runs(graph.nodes().size(), false);
    for (size_t n = graph.nodes().size(); n-- > 0;) {
      const Graph::Node& node = graph.nodes()[n];
      runs[n] = node.op->has_effect() || std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) { return needed[static_cast<size_t>(id)]; });
      if (!runs[n]) continue;
      for (const int id : node.inputs) needed[static_cast<size_t>(id)] = true;
    }
    std::vector<Tensor> values(graph.values().size());
    for (size_t id = 0; id < values.size(); ++id) {
      const Graph::ValueInfo& info = graph.values()[id];
      if (!needed[id] || info.origin == Graph::Origin::node) continue;
      if (info.origin == Graph::Origin::constant) {
        values[id] = info.constant;
      } else if (info.origin == Graph::Origin::replica_index) {
        const int32_t index = replica.replica;
        values[id] = Tensor::of<int32_t>(DType::i32, {}, {&index, 1});
      } else {
        const auto found = feeds.find(info.name);
        if (found == feeds.end()) throw std::runtime_error("no value for " + info.name);
        if (found->second.type() != info.type) throw std::runtime_error(info.name + " is " + info.type.text() + ", the value " + found->second.type().text());
        values[id] = found->second;
      }
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      if (runs[n]) run_node(graph, graph.nodes()[n], values);
    }
    std::vector<Tensor> results;
    for (const Symbol& symbol : wanted) results.push_back(values[static_cast<size_t>(symbol.id())]);
    return results;
  }

  Tensor run(Symbol wanted) { return run(wanted.graph(), {&wanted, 1}).front(); }

 private:
  void run_node(const Graph& graph, const Graph::Node& node, std::vector<Tensor>& values) {
    NodeTypes types;
    types.layer = node.layer;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const int id : node.inputs) {
      types.inputs.push_back(graph.value(id).type);
      inputs.push_back(values[static_cast<size_t>(id)].bytes().data());
    }
    for (const int id : node.outputs) {
      types.outputs.push_back(graph.value(id).type);
      Tensor& value = values[static_cast<size_t>(id)] = Tensor(graph.value(id).type);
      std::memset(value.bytes().data(), 0xab, value.bytes().size());  // a kernel that leaves a place unwritten shows
      outputs.push_back(value.bytes().data());
    }
    if (node.op->crosses_replicas()) {
      for (size_t i = 0; i < node.outputs.size(); ++i) values[static_cast<size_t>(node.outputs[i])] = values[static_cast<size_t>(node.inputs[i])].clone();
      return;
    }
    std::unique_ptr<Kernel> kernel = choose ? choose(*node.op, types) : nullptr;
    if (!kernel) kernel = node.op->kernel(types);
    kernel->run({inputs.data(), outputs.data(), &replica, &step, nullptr});
  }
};

/// A tensor of these values, converted to dtype.
inline Tensor tensor_of(DType dtype, Shape shape, std::vector<double> values) { return cast(Tensor::of<double>(DType::f64, std::move(shape), values), dtype); }

/// The values of a tensor as f64.
inline std::vector<double> values_of(const Tensor& tensor) {
  const Tensor wide = cast(tensor, DType::f64);
  const std::span<const double> values = wide.as<double>();
  return {values.begin(), values.end()};
}

/// Values in [low, high), the same for the same seed, made in f64 and rounded to dtype.
inline Tensor random_tensor(TensorType type, uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 engine(seed);
  Tensor wide({DType::f64, type.shape});
  for (double& value : wide.as<double>()) value = low + (high - low) * (static_cast<double>(engine()) / 4294967296.0);
  return cast(wide, type.dtype);
}

}  // namespace lockstep
