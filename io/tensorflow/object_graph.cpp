#include "io/tensorflow/object_graph.h"

#include <limits>

#include <fmt/format.h>

#include "core/error/error.h"
#include "messages.pb.h"

namespace lockstep::tensorflow {
namespace {

constexpr size_t max_depth = 256;
constexpr size_t nowhere = std::numeric_limits<size_t>::max();

// The edge by which a node is first reached.
struct Arrival {
  size_t parent = nowhere;
  std::string name;
  size_t depth = 0;
  std::vector<size_t> children;  ///< nodes first reached from this one, in order
};

}  // namespace

const ObjectGraph::Node* ObjectGraph::child(const Node& node, std::string_view name) const {
  for (const auto& [child_name, child] : node.children) {
    if (child_name == name) return &nodes[child];
  }
  return nullptr;
}

ObjectGraph read_object_graph(const Bundle& bundle) {
  const std::string& place = bundle.index_path();
  messages::TrackableObjectGraph stored;
  if (!stored.ParseFromString(bundle.read_string(object_graph_key))) throw Error("S19", place, fmt::format("the object graph ({}) is damaged", object_graph_key));
  ObjectGraph graph;
  graph.place = place;
  const auto checked = [&](int parent, int node) {
    if (node < 0 || node >= stored.nodes_size()) {
      throw Error("S19", place, fmt::format("object graph: node {} names node {}, which is out of range ({} nodes)", parent, node, stored.nodes_size()));
    }
    return static_cast<size_t>(node);
  };
  if (stored.nodes_size() == 0) throw Error("S19", place, "object graph: it has no nodes");
  for (int i = 0; i < stored.nodes_size(); ++i) {
    const auto& from = stored.nodes(i);
    ObjectGraph::Node node;
    for (const auto& child : from.children()) node.children.emplace_back(child.local_name(), checked(i, child.node_id()));
    for (const auto& slot : from.slot_variables()) {
      node.slots.push_back({checked(i, slot.original_variable_node_id()), slot.slot_name(), checked(i, slot.slot_variable_node_id())});
    }
    for (const auto& attribute : from.attributes()) {
      const auto tensor = bundle.tensors().find(attribute.checkpoint_key());
      if (tensor == bundle.tensors().end()) {
        throw Error("S19", place, fmt::format("object graph: '{}' has its value under '{}', which the index lacks", printable(attribute.full_name()), printable(attribute.checkpoint_key())));
      }
      // Objects may keep strings, too (iterators, configs): they are no weights.
      if (attribute.name() != "VARIABLE_VALUE" || !tensor->second.dtype) continue;
      node.key = attribute.checkpoint_key();
      node.full_name = attribute.full_name();
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

std::vector<ObjectPath> variables_below(const ObjectGraph& graph, size_t root, const std::function<bool(const std::string&, size_t)>& enter) {
  std::vector<Arrival> arrivals(graph.nodes.size());
  std::vector<bool> is_reached(graph.nodes.size(), false);
  std::vector<size_t> queue{root};
  is_reached[root] = true;
  for (size_t next = 0; next < queue.size(); ++next) {
    const size_t node = queue[next];
    if (arrivals[node].depth >= max_depth) throw Error("S19", graph.place, fmt::format("object graph: objects nest deeper than {} levels", max_depth));
    for (const auto& [name, child] : graph.nodes[node].children) {
      if (is_reached[child] || !enter(name, child)) continue;
      is_reached[child] = true;
      arrivals[child].parent = node;
      arrivals[child].name = name;
      arrivals[child].depth = arrivals[node].depth + 1;
      arrivals[node].children.push_back(child);
      queue.push_back(child);
    }
  }
  std::vector<ObjectPath> paths;
  std::vector<size_t> stack{root};
  while (!stack.empty()) {
    const size_t node = stack.back();
    stack.pop_back();
    if (graph.is_variable(node)) {
      ObjectPath path;
      path.node = node;
      for (size_t at = node; at != root; at = arrivals[at].parent) {
        path.names.insert(path.names.begin(), arrivals[at].name);
        path.nodes.insert(path.nodes.begin(), at);
      }
      paths.push_back(std::move(path));
    }
    stack.insert(stack.end(), arrivals[node].children.rbegin(), arrivals[node].children.rend());
  }
  return paths;
}

}  // namespace lockstep::tensorflow
