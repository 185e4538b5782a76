#include "io/tensorflow/graph_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "io/model_file/optimizer_names.h"
#include "io/tensorflow/optimizer_graph.h"

namespace lockstep::tensorflow {
namespace {

// Attributes that lead to what is no weight (metrics, seeds) or again to what other attributes lead to.
constexpr std::array<std::string_view, 17> skipped = {"keras_api", "signatures", "variables", "trainable_variables", "non_trainable_variables", "_all_variables",
                                                      "regularization_losses", "optimizer", "_loss_tracker", "_compile_metrics", "compiled_metrics", "metrics",
                                                      "_metrics", "seed_generator", "_seed_generators", "_random_generator", "save_counter"};

std::string joined(const std::vector<std::string>& parts, size_t first, size_t last) {
  std::string text;
  for (size_t i = first; i < last; ++i) {
    if (i > first) text += '/';
    text += parts[i];
  }
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts{""};
  for (const char letter : text) {
    if (letter == '/')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

bool is_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }

bool is_network_layer(const std::string& name) {
  for (const std::string_view prefix : {"layer_with_weights-", "layer-"}) {
    if (name.starts_with(prefix) && is_number(name.substr(prefix.size()))) return true;
  }
  return false;
}

// tf.train.Checkpoint(model=..., step=...): the model is the one child that holds something.
size_t model_root(const ObjectGraph& graph, const std::set<size_t>& optimizers, std::vector<std::string>& outside) {
  size_t root = 0;
  while (true) {
    std::set<size_t> holders;
    std::vector<std::string> variables;
    for (const auto& [name, child] : graph.nodes[root].children) {
      if (child == root || optimizers.contains(child)) continue;
      if (is_network_layer(name) || name == "variables" || name == "_functional" || name == "_operations" || name == "layers") return root;
      if (graph.is_variable(child))
        variables.push_back(graph.nodes[child].key);
      else if (!graph.nodes[child].children.empty())
        holders.insert(child);
    }
    // A model of its own has variables only in layers; a checkpoint keeps counters beside the model.
    if (holders.size() != 1 || root != 0) return root;
    const size_t child = *holders.begin();
    const bool is_model = std::any_of(graph.nodes[child].children.begin(), graph.nodes[child].children.end(), [&](const auto& edge) { return !graph.is_variable(edge.second); });
    if (!is_model) return root;
    outside = std::move(variables);
    root = child;
  }
}

// The layer's and the variable's names of a path through objects whose names are known.
void name_by_metadata(StoredTensor& tensor, const ObjectPath& path, const std::string& full_name, const KnownObjects& known) {
  std::string models;
  std::string layer;
  for (const size_t node : path.nodes) {
    const auto object = known.find(node);
    if (object == known.end()) continue;
    if (object->second.kind == KnownObject::Kind::model) models += object->second.name + "/";
    if (object->second.kind == KnownObject::Kind::layer) {
      layer = object->second.name;
      break;
    }
  }
  if (layer.empty()) {
    const size_t last = full_name.rfind('/');
    tensor.layer = models.empty() ? "" : models.substr(0, models.size() - 1);
    tensor.variable = last == std::string::npos ? full_name : full_name.substr(last + 1);
    return;
  }
  tensor.layer = models + layer;
  // The full name begins with the layer's, perhaps behind the name of a subclassed model.
  const std::string searched = "/" + full_name;
  const size_t at = searched.find("/" + layer + "/");
  tensor.variable = at == std::string::npos ? path.names.back() : searched.substr(at + layer.size() + 2);
}

// The same where attributes are all there is: below a network's layer the full name has a part for each attribute.
void name_by_attributes(StoredTensor& tensor, const ObjectPath& path, const std::string& full_name, bool is_network) {
  size_t layer = 0;
  for (size_t i = 0; i + 1 < path.names.size(); ++i) {
    const bool is_numbered = i + 1 < path.names.size() && is_number(path.names[i + 1]);
    if (is_network_layer(path.names[i]))
      layer = i;
    else if (is_numbered && (path.names[i] == "_operations" || path.names[i] == "_layers" || path.names[i] == "layers"))
      layer = i + 1;
    else if (is_numbered && layer == i)
      layer = i + 1;
  }
  const std::vector<std::string> parts = split(full_name);
  const size_t below = std::max<size_t>(1, path.names.size() - 1 - layer);
  const size_t first = parts.size() > below ? parts.size() - below : parts.size() - 1;
  // A subclassed tf_keras model puts its own name in front of its layers'.
  const bool has_model_name = !is_network && first >= 2;
  tensor.layer = joined(parts, has_model_name ? 1 : 0, first);
  tensor.variable = joined(parts, first, parts.size());
}

bool is_trainable(const ObjectPath& path, const KnownObjects& known) {
  return std::all_of(path.nodes.begin(), path.nodes.end(), [&](size_t node) {
    const auto object = known.find(node);
    return object == known.end() || object->second.trainable;
  });
}

}  // namespace

StoredTensor stored_tensor(const std::string& key, const BundleTensor& tensor) {
  StoredTensor stored;
  stored.source = key;
  stored.type = {*tensor.dtype, tensor.shape};
  return stored;
}

void read_from(StoredModel& model, std::shared_ptr<const Bundle> bundle) {
  model.read = [bundle = std::move(bundle)](const StoredTensor& tensor, std::span<std::byte> into) { bundle->read(tensor.source, into); };
}

void add_graph(StoredModel& model, std::shared_ptr<const Bundle> bundle, const ObjectGraph& graph, const KnownObjects& known, const std::string& optimizer_class_name) {
  const std::set<size_t> optimizers = optimizers_of(graph);
  std::vector<std::string> outside;
  const bool knows_names = std::any_of(known.begin(), known.end(), [](const auto& object) { return object.second.kind != KnownObject::Kind::other; });
  const size_t root = known.empty() ? model_root(graph, optimizers, outside) : 0;
  for (const std::string& key : outside) model.notes.push_back(fmt::format("not the model's, left out: {}", printable(key)));

  std::vector<ObjectPath> paths = variables_below(graph, root, [&](const std::string& name, size_t node) {
    return !optimizers.contains(node) && std::find(skipped.begin(), skipped.end(), name) == skipped.end();
  });
  const ObjectGraph::Node* list = graph.child(graph.nodes[root], "variables");
  bool is_listed_only = false;
  if (paths.empty() && list != nullptr) {
    // What Keras 3 exports has no layers, only lists of variables.
    is_listed_only = true;
    for (const auto& [name, node] : list->children) {
      if (graph.is_variable(node)) paths.push_back({node, {"variables", name}, {node}});
    }
  }
  if (list != nullptr) {
    // Keras's own order of weights.
    std::map<size_t, size_t> ranks;
    for (const auto& [name, node] : list->children) ranks.emplace(node, ranks.size());
    const auto rank = [&](const ObjectPath& path) {
      const auto found = ranks.find(path.node);
      return found == ranks.end() ? std::numeric_limits<size_t>::max() : found->second;
    };
    std::stable_sort(paths.begin(), paths.end(), [&](const ObjectPath& a, const ObjectPath& b) { return rank(a) < rank(b); });
  }
  const bool is_keras_3 = is_listed_only || graph.child(graph.nodes[root], "_functional") != nullptr || graph.child(graph.nodes[root], "_operations") != nullptr ||
                          std::any_of(optimizers.begin(), optimizers.end(), [&](size_t node) { return graph.child(graph.nodes[node], "_trainable_variables") != nullptr; });
  model.semantics = is_keras_3 ? 3 : 2;
  model.framework = is_keras_3 ? "keras" : "tf_keras";
  const bool is_network = is_keras_3 || std::any_of(graph.nodes[root].children.begin(), graph.nodes[root].children.end(), [](const auto& edge) { return is_network_layer(edge.first); });

  std::map<std::string, int> counts;
  std::map<size_t, size_t> tensor_of_node;
  std::vector<std::string> full_names;
  for (const ObjectPath& path : paths) {
    const ObjectGraph::Node& node = graph.nodes[path.node];
    StoredTensor tensor = stored_tensor(node.key, bundle->tensors().at(node.key));
    tensor.object_path = joined(path.names, 0, path.names.size() - 1);
    tensor.index = counts[tensor.object_path]++;
    if (!knows_names)
      name_by_attributes(tensor, path, node.full_name, is_network);
    else
      name_by_metadata(tensor, path, node.full_name, known);
    if (!known.empty()) tensor.trainable = is_trainable(path, known);
    tensor_of_node.emplace(path.node, model.tensors.size());
    full_names.push_back(node.full_name);
    model.tensors.push_back(std::move(tensor));
  }
  if (!optimizers.empty()) {
    const ObjectGraph::Node* trainable = graph.child(graph.nodes[root], "trainable_variables");
    model.optimizer = read_optimizer(*bundle, graph, *optimizers.begin(), trainable, {model.tensors, full_names, tensor_of_node}, optimizer_class_name);
  }
  read_from(model, std::move(bundle));
}

}  // namespace lockstep::tensorflow
