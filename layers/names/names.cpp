#include "layers/names/names.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "layers/custom/custom_layer.h"

namespace lockstep {

namespace {

bool is_keras_model(const Model& model) { return model.registered_name.empty() && (model.class_name == "Functional" || model.class_name == "Sequential"); }

std::string join_names(std::string_view path, std::string_view name) { return path.empty() ? std::string(name) : fmt::format("{}/{}", path, name); }

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> result;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    result.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return result;
}

/// How Keras numbers the objects of a container: "dense", "dense_1" by class.
class ContainerNames {
 public:
  std::string next(std::string_view class_name) {
    const std::string name = snake_case(class_name);
    const int count = counts_[name]++;
    return count == 0 ? name : fmt::format("{}_{}", name, count);
  }

 private:
  std::map<std::string, int> counts_;
};

/// Where a layer stands, in each way of naming.
struct Position {
  std::string path;                     ///< here: names joined by "/"
  std::vector<std::string> components;  ///< the same names apart
  std::string object_path;
  std::string keras2_object_path;
  std::string keras3_scope;
  std::string keras2_scope;
  std::string top_layer;
};

/// Walks the layers of a model as Keras lists them.
class NameWalk {
 public:
  using Visit = std::function<void(const Layer& layer, const Position& position)>;
  using VisitInput = std::function<void(const Model::Input& input, const std::string& object_path)>;

  NameWalk(const Model& root, const std::function<bool(const Layer&, const std::string& path)>& has_weights, Visit visit, VisitInput visit_input)
      : root_(root), has_weights_(has_weights), visit_(std::move(visit)), visit_input_(std::move(visit_input)) {}

  void run() {
    Position position;
    if (root_.class_name == "Sequential" || !is_keras_model(root_)) position.keras3_scope = root_.name;
    if (!is_keras_model(root_)) position.keras2_scope = root_.name;
    model(root_, position);
  }

 private:
  void model(const Model& model, const Position& outer) {
    ContainerNames names;
    int with_weights = 0;
    for (const Model::Part& part : model.parts()) {
      if (part.is_input) {
        visit_input_(model.inputs[static_cast<size_t>(part.index)], join_names(outer.object_path, "layers/" + names.next("InputLayer")));
        continue;
      }
      const Layer& layer = *model.layers[static_cast<size_t>(part.index)];
      Position position = inside(outer, layer);
      position.object_path = own_path(position.path, join_names(outer.object_path, "layers/" + names.next(class_name_of(layer))));
      if (has_weights_(layer, position.path)) position.keras2_object_path = join_names(outer.keras2_object_path, fmt::format("layer_with_weights-{}", with_weights++));
      this->layer(layer, position);
    }
  }

  void layer(const Layer& layer, Position position) {
    if (const auto* custom = dynamic_cast<const CustomLayer*>(&layer)) {
      position.keras3_scope = join_names(position.keras3_scope, layer.name);
      position.keras2_scope = join_names(position.keras2_scope, layer.name);
      visit_(layer, position);
      for (const auto& part : inner_model(*custom)->layers) {
        Position below = inside(position, *part);
        below.object_path = own_path(below.path, join_names(position.object_path, attribute_name(part->name)));
        below.keras2_object_path = join_names(position.keras2_object_path, attribute_name(part->name));
        this->layer(*part, below);
      }
    } else if (const auto* nested = dynamic_cast<const Model*>(&layer)) {
      // Keras names variables when layers are built: those of a functional model were called before it was made, those of a Sequential by it.
      position.keras3_scope = nested->class_name == "Functional" ? std::string() : layer.name;
      if (!is_keras_model(*nested)) position.keras2_scope = layer.name;
      visit_(layer, position);
      model(*nested, position);
    } else {
      position.keras3_scope = join_names(position.keras3_scope, layer.name);
      position.keras2_scope = join_names(position.keras2_scope, layer.name);
      visit_(layer, position);
    }
  }

  static Position inside(const Position& outer, const Layer& layer) {
    Position position = outer;
    position.path = join_names(outer.path, layer.name);
    position.components.push_back(layer.name);
    if (position.top_layer.empty()) position.top_layer = layer.name;
    return position;
  }

  std::string own_path(const std::string& path, std::string standard) const {
    const auto known = root_.object_paths.find(path);
    return known == root_.object_paths.end() ? std::move(standard) : known->second;
  }

  const Model& root_;
  const std::function<bool(const Layer&, const std::string&)>& has_weights_;
  Visit visit_;
  VisitInput visit_input_;
};

std::string encoded(const std::string& component) {
  std::string result;
  for (char c : component) {
    if (c == '%') {
      result += "%25";
    } else if (c == '/') {
      result += "%2F";
    } else {
      result += c;
    }
  }
  return result;
}

bool is_below(std::string_view path, std::string_view layer) { return path == layer || (path.starts_with(layer) && path.size() > layer.size() && path[layer.size()] == '/'); }

}  // namespace

std::vector<WeightName> names_of(const Model& model, const WeightList& weights) {
  std::set<const Layer*> owners;  // the layers that the walk visits: their weights are theirs, whatever a name holds
  const auto any = std::function<bool(const Layer&, const std::string&)>([](const Layer&, const std::string&) { return true; });
  NameWalk(model, any, [&](const Layer& layer, const Position&) { owners.insert(&layer); }, [](const Model::Input&, const std::string&) {}).run();

  const auto belongs = [&](const Weight& weight, const Layer& layer, const std::string& path) {
    return weight.owner == &layer || (!owners.contains(weight.owner) && is_below(weight.layer, path));
  };
  const auto has_weights = std::function<bool(const Layer&, const std::string&)>([&](const Layer& layer, const std::string& path) {
    if (inner_model(layer)) return std::any_of(weights.all().begin(), weights.all().end(), [&](const Weight& weight) { return is_below(weight.layer, path); });
    return std::any_of(weights.all().begin(), weights.all().end(), [&](const Weight& weight) { return belongs(weight, layer, path); });
  });

  std::vector<WeightName> result;
  std::set<const Weight*> named;
  std::map<std::string, int> indices;
  const auto visit = [&](const Layer& layer, const Position& position) {
    const bool container = inner_model(layer) != nullptr;
    for (const Weight& weight : weights.all()) {
      if (named.contains(&weight)) continue;
      if (container ? weight.owner != &layer : !belongs(weight, layer, position.path)) continue;
      named.insert(&weight);
      WeightName name;
      name.weight = &weight;
      // Levels between the layer and the variable: layers and cells inside a built-in layer.
      std::vector<std::string> levels;
      if (weight.layer.size() > position.path.size()) levels = split(std::string_view(weight.layer).substr(position.path.size() + 1));
      const std::vector<std::string> variable = split(weight.name);
      name.components = position.components;
      name.components.insert(name.components.end(), levels.begin(), levels.end());
      name.components.insert(name.components.end(), variable.begin(), variable.end());
      for (const std::string& component : name.components) name.extract_path = join_names(name.extract_path, encoded(component));
      name.object_path = position.object_path;
      name.keras2_object_path = position.keras2_object_path;
      name.keras3_path = position.keras3_scope;
      name.keras2_path = position.keras2_scope;
      levels.insert(levels.end(), variable.begin(), variable.end() - 1);
      for (const std::string& level : levels) {
        name.object_path = join_names(name.object_path, level);
        name.keras2_object_path = join_names(name.keras2_object_path, level);
        name.keras3_path = join_names(name.keras3_path, level);
        name.keras2_path = join_names(name.keras2_path, level);
      }
      name.keras3_path = join_names(name.keras3_path, variable.back());
      name.keras2_path = join_names(name.keras2_path, variable.back());
      name.object_index = indices[name.object_path]++;
      name.top_layer = position.top_layer;
      result.push_back(std::move(name));
    }
  };
  NameWalk(model, has_weights, visit, [](const Model::Input&, const std::string&) {}).run();
  for (const Weight& weight : weights.all()) {
    if (!named.contains(&weight)) throw Error("X05", "", fmt::format("weight '{}' belongs to no layer of model '{}'", weight.variable.path, model.name));
  }
  // Legacy files: trainable ones of the whole outermost layer, then the others.
  std::map<std::string, int> legacy;
  for (const bool trainable : {true, false}) {
    for (WeightName& name : result) {
      if (name.weight->variable.trainable == trainable) name.legacy_index = legacy[name.top_layer]++;
    }
  }
  return result;
}

std::vector<ObjectGroup> object_groups(const Model& model) {
  std::vector<ObjectGroup> result = {{"", model.name}};
  const auto none = std::function<bool(const Layer&, const std::string&)>([](const Layer&, const std::string&) { return false; });
  NameWalk(
      model, none, [&](const Layer& layer, const Position& position) { result.push_back({position.object_path, layer.name}); },
      [&](const Model::Input& input, const std::string& path) {
        // A class of the user's own has no Input layers.
        if (is_keras_model(model) || path.find('/') != path.rfind('/')) result.push_back({path, input.name});
      })
      .run();
  return result;
}

std::vector<std::string> top_layers(const Model& model) {
  std::vector<std::string> result;
  for (const Model::Part& part : model.parts()) {
    if (!part.is_input) {
      result.push_back(model.layers[static_cast<size_t>(part.index)]->name);
    } else if (is_keras_model(model)) {
      result.push_back(model.inputs[static_cast<size_t>(part.index)].name);
    }
  }
  return result;
}

std::string attribute_name(std::string_view name) {
  // What Keras 3.15's Layer has: an attribute of that name would be skipped on saving, or break the layer.
  static constexpr std::array<std::string_view, 57> taken = {
      "activity_regularizer", "add_loss", "add_metric", "add_variable", "add_weight", "autocast", "build", "build_from_config", "built", "call",
      "call_signature_parameters", "compute_dtype", "compute_mask", "compute_output_shape", "compute_output_spec", "count_params", "dtype", "dtype_policy",
      "from_config", "get_build_config", "get_config", "get_weights", "input", "input_dtype", "input_spec", "load_own_variables", "losses", "metrics",
      "metrics_variables", "name", "non_trainable_variables", "non_trainable_weights", "output", "path", "quantization_mode", "quantize", "quantized_build",
      "quantized_call", "rematerialized_call", "save_own_variables", "set_weights", "stateless_call", "supports_jit", "supports_masking", "symbolic_call",
      "trainable", "trainable_variables", "trainable_weights", "variable_dtype", "variables", "weights",
      // Python's words that a layer may well be called.
      "and", "class", "in", "is", "not", "or"};
  std::string result;
  for (char c : name) result += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ? c : '_';
  // Keras does not save attributes that start with two underscores.
  while (result.starts_with("__")) result.erase(0, 1);
  if (result.empty() || (result[0] >= '0' && result[0] <= '9')) result = "_" + result;
  if (std::find(taken.begin(), taken.end(), result) != taken.end()) result += "_";
  return result;
}

std::string class_name_of(const Layer& layer) {
  if (const auto* custom = dynamic_cast<const CustomLayer*>(&layer); custom && !custom->class_name.empty()) return custom->class_name;
  if (layer.borrow.is_map()) return fmt::format("Borrowing{}", layer.type());
  if (layer.type() == "SyncBatchNormalization") return "BatchNormalization";  // Keras 3's name, with synchronized: true
  return std::string(layer.type());
}

std::string registered_name_of(const Layer& layer) {
  if (const auto* model = dynamic_cast<const Model*>(&layer)) return model->registered_name;
  if (const auto* custom = dynamic_cast<const CustomLayer*>(&layer)) {
    return custom->registered_name.empty() ? fmt::format("lockstep>{}", class_name_of(layer)) : custom->registered_name;
  }
  // What Keras has no class for.
  if (layer.borrow.is_map() || layer.type() == "Print" || layer.type() == "Cast") return fmt::format("lockstep>{}", class_name_of(layer));
  return {};
}

}  // namespace lockstep
