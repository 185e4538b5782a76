#include "io/tensorflow/optimizer_graph.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/error/error.h"
#include "io/model_file/optimizer_names.h"
#include "io/tensorflow/graph_model.h"

namespace lockstep::tensorflow {
namespace {

const std::string* key_of(const ObjectGraph& graph, const ObjectGraph::Node& node, std::string_view child) {
  const ObjectGraph::Node* found = graph.child(node, child);
  return found != nullptr && !found->key.empty() ? &found->key : nullptr;
}

std::optional<int64_t> integer_of(const Bundle& bundle, const std::string* key) {
  if (key == nullptr) return std::nullopt;
  const BundleTensor& tensor = bundle.tensors().at(*key);
  if (tensor.dtype != DType::i64 || !tensor.shape.empty()) throw Error("S19", bundle.index_path(), "'" + printable(*key) + "' was to be an int64 scalar, the optimizer's count of steps");
  int64_t value = 0;
  bundle.read(*key, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::optional<double> real_of(const Bundle& bundle, const std::string* key) {
  if (key == nullptr) return std::nullopt;
  const BundleTensor& tensor = bundle.tensors().at(*key);
  if (tensor.dtype != DType::f32 || !tensor.shape.empty()) return std::nullopt;
  float value = 0;
  bundle.read(*key, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::string without_underscore(const std::string& name) { return name.starts_with('_') ? name.substr(1) : name; }

// Children in the order of their numbers.
std::vector<std::pair<size_t, size_t>> numbered(const ObjectGraph::Node& list) {
  std::vector<std::pair<size_t, size_t>> members;
  for (const auto& [name, node] : list.children) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) members.emplace_back(number, node);
  }
  std::sort(members.begin(), members.end());
  return members;
}

struct Membership {
  std::string list;
  std::optional<size_t> position;
};

// Which of the optimizer's lists a variable is in, and where; or its own attribute.
std::map<size_t, Membership> memberships(const ObjectGraph& graph, const ObjectGraph::Node& optimizer) {
  std::map<size_t, Membership> found;
  for (const auto& [name, child] : optimizer.children) {
    if (name == "_variables" || name == "_trainable_variables") continue;
    if (graph.is_variable(child)) found.emplace(child, Membership{without_underscore(name), std::nullopt});
    for (const auto& [position, node] : numbered(graph.nodes[child])) found.emplace(node, Membership{without_underscore(name), position});
  }
  return found;
}

}  // namespace

std::set<size_t> optimizers_of(const ObjectGraph& graph) {
  std::set<size_t> optimizers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    const bool is_new = key_of(graph, node, "_iterations") != nullptr;
    const bool is_legacy = key_of(graph, node, "iter") != nullptr && (key_of(graph, node, "decay") != nullptr || key_of(graph, node, "learning_rate") != nullptr);
    if (is_new || is_legacy) optimizers.insert(i);
  }
  return optimizers;
}

StoredOptimizer read_optimizer(const Bundle& bundle, const ObjectGraph& graph, size_t optimizer, const ObjectGraph::Node* trainable, const GraphWeights& weights,
                               const std::string& class_name) {
  const ObjectGraph::Node& node = graph.nodes[optimizer];
  StoredOptimizer stored;
  const ObjectGraph::Node* list = graph.child(node, "_variables");
  const std::string* iterations = key_of(graph, node, "_iterations");
  stored.legacy = iterations == nullptr;
  if (stored.legacy) iterations = key_of(graph, node, "iter");
  stored.iterations = integer_of(bundle, iterations);
  stored.learning_rate = real_of(bundle, key_of(graph, node, stored.legacy ? "learning_rate" : "_learning_rate"));
  stored.class_name = optimizer_class(class_name);

  const auto class_from = [&](const std::string& full_name) {
    const size_t slash = full_name.find('/');
    if (stored.class_name.empty() && slash != std::string::npos) stored.class_name = optimizer_class(full_name.substr(0, slash));
  };
  std::vector<SlotName> names;
  const auto add = [&](size_t variable, const std::string& slot) {
    const std::string& key = graph.nodes[variable].key;
    stored.slots.push_back({slot, stored_tensor(key, bundle.tensors().at(key))});
  };
  if (stored.legacy) {
    class_from(graph.child(node, "iter")->full_name);
    for (const auto& slot : node.slots) {
      if (!graph.is_variable(slot.variable)) continue;
      add(slot.variable, read_slot_name("_/_/" + slot.name, stored.class_name).slot);
      const auto weight = weights.tensor_of_node.find(slot.weight);
      if (weight != weights.tensor_of_node.end()) belong_to(stored.slots.back().tensor, weights.tensors[weight->second]);
    }
    return stored;
  }
  if (list == nullptr) return stored;
  const auto lists = memberships(graph, node);
  const ObjectGraph::Node* own = graph.child(node, "_trainable_variables");
  const auto trainables = numbered(own != nullptr ? *own : trainable != nullptr ? *trainable
                                                                                : ObjectGraph::Node{});
  std::vector<size_t> variables;
  for (const auto& [position, variable] : numbered(*list)) {
    const std::string& key = graph.nodes[variable].key;
    if (key.empty() || key == *iterations || (key_of(graph, node, "_learning_rate") != nullptr && key == *key_of(graph, node, "_learning_rate"))) continue;
    variables.push_back(variable);
    class_from(graph.nodes[variable].full_name);
  }
  if (stored.class_name.empty()) class_from(graph.child(node, "_iterations")->full_name);
  for (const size_t variable : variables) {
    SlotName name = read_slot_name(graph.nodes[variable].full_name, stored.class_name);
    const auto member = lists.find(variable);
    if (member != lists.end()) name.slot = member->second.list;
    add(variable, name.slot);
    names.push_back(std::move(name));
  }
  name_weights(stored, names, weights.tensors, weights.full_names);
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto member = lists.find(variables[i]);
    if (member == lists.end() || !member->second.position || *member->second.position >= trainables.size()) continue;
    const auto weight = weights.tensor_of_node.find(trainables[*member->second.position].second);
    if (weight != weights.tensor_of_node.end()) belong_to(stored.slots[i].tensor, weights.tensors[weight->second]);
  }
  return stored;
}

}  // namespace lockstep::tensorflow
