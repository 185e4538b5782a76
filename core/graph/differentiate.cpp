#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/graph/graph.h"
#include "core/graph/op.h"
#include "core/ops/ops.h"

namespace lockstep {

namespace {

/// Which values depend on one of `roots`, among those made so far.
std::vector<bool> dependents(const Graph& graph, std::span<const Symbol> roots) {
  std::vector<bool> depends(graph.values().size(), false);
  for (const Symbol& root : roots) depends[static_cast<size_t>(root.id())] = true;
  for (const Graph::Node& node : graph.nodes()) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](int id) { return depends[static_cast<size_t>(id)]; });
    if (!any) continue;
    for (const int id : node.outputs) depends[static_cast<size_t>(id)] = true;
  }
  return depends;
}

}  // namespace

std::vector<Symbol> differentiate(std::span<const Symbol> outputs, std::span<const Symbol> output_gradients, std::span<const Symbol> with_respect_to) {
  std::vector<Symbol> results(with_respect_to.size());
  if (outputs.empty()) return results;
  Graph& graph = outputs.front().graph();
  const std::vector<bool> needed = dependents(graph, with_respect_to);
  std::vector<Symbol> gradients(graph.values().size());
  const auto accumulate = [&](int id, Symbol gradient) {
    Symbol& sum = gradients[static_cast<size_t>(id)];
    sum = sum ? ops::add(sum, gradient) : gradient;
  };
  for (size_t i = 0; i < outputs.size(); ++i) accumulate(outputs[i].id(), output_gradients[i]);

  const size_t count = graph.nodes().size();
  for (size_t n = count; n-- > 0;) {
    const Graph::Node node = graph.nodes()[n];  // a copy: gradients add nodes
    std::vector<Symbol> from_outputs;
    bool reached = false;
    for (const int id : node.outputs) {
      from_outputs.push_back(gradients[static_cast<size_t>(id)]);
      reached = reached || (from_outputs.back().valid() && needed[static_cast<size_t>(id)]);
    }
    if (!reached) continue;
    std::vector<Symbol> node_inputs, node_outputs;
    for (const int id : node.inputs) node_inputs.emplace_back(&graph, id);
    for (const int id : node.outputs) node_outputs.emplace_back(&graph, id);
    const LayerScope scope(graph, node.layer);
    const std::vector<Symbol> to_inputs = node.op->gradient({graph, node_inputs, node_outputs}, from_outputs);
    for (size_t i = 0; i < node.inputs.size() && i < to_inputs.size(); ++i) {
      const Symbol gradient = to_inputs[i];
      // Gradients of what nobody asked for are dropped here; the compiler removes the nodes.
      if (!gradient.valid() || !needed[static_cast<size_t>(node.inputs[i])]) continue;
      if (gradient.type() != node_inputs[i].type()) {
        throw Error("X03", node.layer, fmt::format("gradient of {} for input {} is {}, the input is {}", node.op->name(), i, gradient.type().text(), node_inputs[i].type().text()));
      }
      accumulate(node.inputs[i], gradient);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) results[i] = gradients[static_cast<size_t>(with_respect_to[i].id())];
  return results;
}

}  // namespace lockstep
