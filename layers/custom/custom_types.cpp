#include "layers/custom/custom_types.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace lockstep {

CustomTypes::CustomTypes(LayerRegistry known, std::vector<CustomType> types) : known_(std::move(known)), types_(std::move(types)) {}

LayerRegistry CustomTypes::registry() const {
  LayerRegistry result = known_;
  for (const CustomType& type : types_) {
    result.add(type.name, [types = shared_from_this(), &type]() -> std::unique_ptr<Layer> { return std::make_unique<CustomLayer>(types, type); });
  }
  return result;
}

namespace {

struct TypeSection {
  Value parameters;
  std::vector<std::string> inputs;
  Value weights;
  Value layers;
  Value outputs;

  void fields(Fields& fields) {
    fields.add("parameters", parameters, "names with their defaults; null: required");
    fields.add("inputs", inputs, "names of what the layer is called with").require();
    fields.add("weights", weights, "weights of its own: {name: {shape, initializer, trainable, regularizer}}");
    fields.add("layers", layers, "the layers inside").require();
    fields.add("outputs", outputs, "names of the layers that give the results; the last by default");
  }
};

CustomType read_type(const std::string& name, const Value& value) {
  const std::string path = join_path("custom_layers", name);
  const auto section = read_described<TypeSection>(value, path);
  CustomType type;
  type.name = name;
  type.place = value.key_place().source ? value.key_place() : value.place();
  if (!section.parameters.is_null()) {
    const std::vector<std::string> reserved = {"name", "trainable", "dtype", "type", "inputs", "borrow", "activity_regularizer", "use", "layers"};
    for (const auto& [parameter, standard] : section.parameters.as_map()) {
      if (std::find(reserved.begin(), reserved.end(), parameter) != reserved.end()) {
        fail_at(standard.key_place().source ? standard.key_place() : standard.place(), "Y29", fmt::format("{}.parameters: '{}' is a key of every layer; choose another name", path, parameter));
      }
      type.parameters.emplace_back(parameter, standard);
    }
  }
  type.inputs = section.inputs;
  for (const Value& input : value.at("inputs").as_list()) type.input_places.push_back(input.place());
  type.weights = section.weights;
  if (!type.weights.is_null()) type.weights.as_map();
  type.layers = section.layers;
  type.layers.as_list();
  type.outputs = section.outputs;
  return type;
}

/// Types named in a list of layers, models inside included.
void for_each_type(const Value& layers, const std::function<void(const Value&)>& visit) {
  if (!layers.is_list()) return;
  for (const Value& layer : layers.as_list()) {
    const Value* inside = layer.find("layers");
    const Value* type = layer.find("type");
    if (inside) for_each_type(*inside, visit);
    if (!inside && type && type->is_string() && !type->as_string().starts_with("$")) visit(*type);
  }
}

/// "a -> b -> a" when a type contains itself, else empty.
std::string cycle_from(const CustomType& start, const std::vector<CustomType>& types) {
  std::vector<std::string> path;
  std::string found;
  std::function<void(const CustomType&)> walk = [&](const CustomType& type) {
    if (!found.empty() || std::find(path.begin(), path.end(), type.name) != path.end()) return;
    path.push_back(type.name);
    for_each_type(type.layers, [&](const Value& used) {
      if (used.as_string() == start.name && found.empty()) found = fmt::format("{} -> {}", fmt::join(path, " -> "), start.name);
      const auto next = std::find_if(types.begin(), types.end(), [&](const CustomType& other) { return other.name == used.as_string(); });
      if (next != types.end()) walk(*next);
    });
    path.pop_back();
  };
  walk(start);
  return found;
}

}  // namespace

void add_custom_layers(LayerRegistry& registry, const Value& section) {
  if (section.is_null()) return;
  Problems problems;
  std::vector<CustomType> types;
  for (const auto& [name, value] : section.as_map()) {
    problems.collect([&, &name = name, &value = value] {
      if (registry.find(name)) {
        fail_at(value.key_place().source ? value.key_place() : value.place(), "Y29", fmt::format("custom layer '{}' has the name of a known layer; choose another", printable(name)));
      }
      types.push_back(read_type(name, value));
    });
  }
  std::vector<std::string> known = registry.types();
  for (const auto& [name, value] : section.as_map()) known.push_back(name);
  for (const CustomType& type : types) {
    for_each_type(type.layers, [&](const Value& used) {
      const std::string& name = used.as_string();
      if (std::find(known.begin(), known.end(), name) != known.end()) return;
      problems.add(problem_at(used.place(), "Y30", fmt::format("custom layer '{}': unknown layer '{}'{} ('lockstep list layers')", type.name, printable(name), did_you_mean(name, known))));
    });
    // Every `$name`, though no layer of the type may be made; a required parameter may be text.
    std::vector<std::pair<std::string, Value>> stand_ins = type.parameters;
    for (auto& [name, value] : stand_ins) {
      if (value.is_null()) value = Value("text").with_place(value.place());
    }
    for (const Value* part : {&type.weights, &type.layers, &type.outputs}) {
      problems.collect([&] { substitute(*part, stand_ins, type); });
    }
    const std::string cycle = cycle_from(type, types);
    if (!cycle.empty()) problems.add(problem_at(type.place, "Y31", fmt::format("custom layer '{}' contains itself: {}", type.name, cycle)));
  }
  problems.raise();
  const auto shared = std::make_shared<CustomTypes>(registry, std::move(types));
  const LayerRegistry all = shared->registry();
  for (const CustomType& type : shared->types()) registry.add(type.name, *all.find(type.name));
}

}  // namespace lockstep
