#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/tensorflow/bundle.h"

namespace lockstep::tensorflow {

constexpr const char* object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The Python objects that a checkpoint was made from: node 0 is the root, children are its attributes. Several names for one node and cycles are normal.
struct ObjectGraph {
  struct Slot {
    size_t weight = 0;    ///< node
    std::string name;     ///< "m"
    size_t variable = 0;  ///< node
  };
  struct Node {
    std::vector<std::pair<std::string, size_t>> children;
    std::string key;          ///< of the variable's value in the bundle; empty for objects that are no variables
    std::string full_name;    ///< "hidden/kernel"
    std::vector<Slot> slots;  ///< legacy optimizers
  };
  std::vector<Node> nodes;
  std::string place;  ///< the file, for errors

  /// The child of that name, or nothing.
  const Node* child(const Node& node, std::string_view name) const;
  bool is_variable(size_t node) const { return !nodes[node].key.empty(); }
};

/// Every edge leads to a node, every key to a tensor of numbers. Throws Error S19 otherwise.
ObjectGraph read_object_graph(const Bundle& bundle);

/// Where an object is: the shortest path of attributes to it, in the order of the names' appearance.
struct ObjectPath {
  size_t node = 0;
  std::vector<std::string> names;  ///< attributes from `root` to it
  std::vector<size_t> nodes;       ///< the objects they lead to; the last is `node`
};

/// Variables below `root`, each once, at the first of its shortest paths, ordered as their objects' attributes are. `enter` says which edges to follow.
/// Throws S19 where objects nest deeper than 256 levels.
std::vector<ObjectPath> variables_below(const ObjectGraph& graph, size_t root, const std::function<bool(const std::string& name, size_t node)>& enter);

}  // namespace lockstep::tensorflow
