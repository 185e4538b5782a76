#include "layers/keras/nodes.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {

namespace {

bool is_tensor(const Value& value) {
  if (!value.is_list() || value.size() < 3) return false;
  const Value::List& parts = value.as_list();
  return parts[0].is_string() && parts[1].is_integer() && parts[2].is_integer();
}

KerasNodes::Tensor tensor_of(const Value& value) {
  const Value::List& parts = value.as_list();
  return {parts[0].as_string(), parts[1].as_integer(), parts[2].as_integer()};
}

/// Lists as they stand or as {"class_name": "__tuple__", "items": [...]}.
const Value& plain(const Value& value) {
  const Value* items = value.find("items");
  const Value* name = value.find("class_name");
  return items && name && name->is_string() && name->as_string() == "__tuple__" ? *items : value;
}

/// Keras 3's {"class_name": "__keras_tensor__", "config": {..., "keras_history": [layer, node, tensor]}}.
const Value* history_of(const Value& value) {
  const Value* name = value.find("class_name");
  const Value* config = value.find("config");
  if (!name || !name->is_string() || name->as_string() != "__keras_tensor__" || !config) return nullptr;
  return config->find("keras_history");
}

bool is_off(const Value& value) { return value.is_null() || (value.is_boolean() && !value.as_boolean()); }

}  // namespace

void KerasNodes::add_layer(const std::string& name, int layer, bool is_model) {
  Known& known = known_[name];
  known.layer = layer;
  known.is_model = is_model;
}

void KerasNodes::add_input(const std::string& name, int input) { known_[name].input = input; }

void KerasNodes::note_use(const Tensor& tensor) {
  if (tensor.node == 0) known_[tensor.layer].first_is_used = true;
}

void KerasNodes::collect(const Value& given, const std::string& key, Node& node) {
  const Value& value = plain(given);
  if (const Value* history = history_of(value)) {
    const Value& parts = plain(*history);
    if (!is_tensor(parts)) fail_at(node.place, "M23", fmt::format("layer '{}/{}': keras_history is {}, expected [layer, node, tensor]", path_, node.layer, parts.described()));
    node.inputs.push_back({key, tensor_of(parts)});
    note_use(node.inputs.back().tensor);
  } else if (is_tensor(value)) {
    node.inputs.push_back({key, tensor_of(value)});
    note_use(node.inputs.back().tensor);
    if (value.size() > 3 && value.as_list()[3].is_map()) read_arguments(value.as_list()[3], node);
  } else if (value.is_list()) {
    for (const Value& part : value.as_list()) collect(part, "", node);
  } else if (value.is_map() && !value.find("class_name")) {
    for (const auto& [name, part] : value.as_map()) collect(part, name, node);
  } else if (!is_off(value)) {
    fail_at(node.place, "M22", fmt::format("layer '{}/{}' is called with {}, which is no layer's output; constants are not taken here", path_, node.layer, value.described()));
  }
}

void KerasNodes::read_arguments(const Value& arguments, Node& node) {
  for (const auto& [name, value] : arguments.as_map()) {
    if (name == "training" && value.is_boolean()) {
      node.training = value.as_boolean();
    } else if (!is_off(value)) {
      fail_at(node.place, "M22", fmt::format("layer '{}/{}' is called with the argument '{}', which is not taken here", path_, node.layer, printable(name)));
    }
  }
}

void KerasNodes::read(const std::string& layer, const Value& inbound_nodes, const Place& place) {
  const Value& list = plain(inbound_nodes);
  if (!list.is_list()) fail_at(place, "M23", fmt::format("layer '{}/{}': inbound_nodes is {}, expected a list", path_, layer, list.described()));
  for (const Value& call : list.as_list()) {
    // The call stands before its arguments are read, so that what reads it does not fail for its sake.
    known_[layer].calls.push_back(static_cast<int>(nodes_.size()));
    Node& node = nodes_.emplace_back();
    node.layer = layer;
    node.place = place;
    const Value* positional = call.find("args");
    if (positional) {
      const Value& arguments = plain(*positional);
      collect(arguments.is_list() ? arguments : Value(Value::List{arguments}), "", node);
      if (const Value* named = call.find("kwargs"); named && named->is_map()) read_arguments(*named, node);
    } else {
      known_[layer].keras2 = true;
      collect(call, "", node);
    }
  }
}

Model::Reference KerasNodes::resolve(const Tensor& tensor, const std::string& reader, const Place& place) const {
  const auto found = known_.find(tensor.layer);
  if (found == known_.end() || (found->second.layer < 0 && found->second.input < 0)) {
    std::vector<std::string> names;
    for (const auto& [name, known] : known_) {
      if (known.layer >= 0 || known.input >= 0) names.push_back(name);
    }
    fail_at(place, "M23", fmt::format("'{}' of '{}' reads '{}', which no layer is called{}", reader, path_, printable(tensor.layer), did_you_mean(tensor.layer, names)));
  }
  const Known& known = found->second;
  if (known.input >= 0) return {-1, known.input};
  // Keras 2 gives a model that has an Input layer a node of its own, number 0, when it is made, and leaves it out of the file.
  const int64_t first = known.is_model && known.keras2 && !known.first_is_used ? 1 : 0;
  const int64_t call = tensor.node - first;
  if (call < 0 || call >= static_cast<int64_t>(known.calls.size()) || tensor.tensor < 0) {
    fail_at(place, "M23", fmt::format("'{}' of '{}' reads node {}, tensor {} of '{}', which is called {} times", reader, path_, tensor.node, tensor.tensor, tensor.layer, known.calls.size()));
  }
  return {known.calls[static_cast<size_t>(call)], static_cast<int>(tensor.tensor)};
}

void KerasNodes::connect(Model& model, const std::map<std::string, std::vector<std::string>>& keys) {
  Problems problems;
  for (Node& node : nodes_) {
    Model::Call& call = model.calls.emplace_back();
    call.layer = known_[node.layer].layer;
    call.training = node.training;
    call.place = node.place;
    // A mapping of inputs goes by its keys, not by the order in which they are written.
    if (const auto order = keys.find(node.layer); order != keys.end()) {
      const auto rank = [&](const Argument& argument) { return std::find(order->second.begin(), order->second.end(), argument.key) - order->second.begin(); };
      std::stable_sort(node.inputs.begin(), node.inputs.end(), [&](const Argument& a, const Argument& b) { return rank(a) < rank(b); });
    }
    for (const Argument& input : node.inputs) problems.collect([&] { call.inputs.push_back(resolve(input.tensor, node.layer, node.place)); });
    if (node.inputs.empty()) problems.add(problem_at(node.place, "M23", fmt::format("layer '{}/{}' is called without an input", path_, node.layer)));
  }
  problems.raise();
}

std::vector<KerasNodes::Named> KerasNodes::named_tensors(const Value& given, const std::string& path) {
  const Value& value = plain(given);
  std::vector<Named> result;
  if (is_tensor(value)) {
    result.push_back({"", tensor_of(value)});
  } else if (value.is_list()) {
    for (const Value& part : value.as_list()) {
      for (Named& named : named_tensors(part, path)) result.push_back(std::move(named));
    }
  } else if (value.is_map()) {
    for (const auto& [key, part] : value.as_map()) {
      std::vector<Named> parts = named_tensors(part, path);
      if (parts.size() != 1) fail_at(given.place(), "M23", fmt::format("model '{}': '{}' of its inputs or outputs holds {} tensors, expected one", path, printable(key), parts.size()));
      result.push_back({key, parts.front().tensor});
    }
  } else {
    fail_at(given.place(), "M23", fmt::format("model '{}': its inputs or outputs are {}, expected [layer, node, tensor]", path, value.described()));
  }
  return result;
}

}  // namespace lockstep
