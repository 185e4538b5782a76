#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "layers/custom/custom_layer.h"
#include "layers/keras/keras_config.h"
#include "layers/keras/nodes.h"

namespace lockstep {

CustomObjects::CustomObjects(Value mapping) : mapping_(std::move(mapping)) {
  if (!mapping_.is_null() && !mapping_.is_map()) {
    fail_at(mapping_.place(), "Y12", fmt::format("restore.custom_objects: expected {{class in the file: type here}}, found {}", mapping_.described()));
  }
}

const Value* CustomObjects::find(std::string_view registered_name, std::string_view class_name) const {
  for (const std::string_view name : {registered_name, class_name}) {
    if (const Value* found = name.empty() ? nullptr : mapping_.find(name)) return found;
  }
  return nullptr;
}

namespace {

std::string join_names(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

/// {class_name, module, config, registered_name, name} of a layer in a file.
struct Described {
  std::string class_name;       ///< as it stands: "Dense", "my_package>Tower"
  std::string bare;             ///< without a package
  std::string registered_name;  ///< "my_package>Tower"; empty for Keras's own
  std::string module;           ///< empty in Keras 2 and .h5
  Value config = Value::map();
  std::string name;
  Place place;
};

const Value& member(const Value& value, std::string_view key, const std::string& what) {
  const Value* found = value.find(key);
  if (!found) fail_at(value.place(), "M23", fmt::format("{} has no '{}'", what, key));
  return *found;
}

std::string text_member(const Value& value, std::string_view key) {
  const Value* found = value.find(key);
  return found && found->is_string() ? found->as_string() : std::string();
}

Described describe(const Value& value, const std::string& what) {
  if (!value.is_map()) fail_at(value.place(), "M23", fmt::format("{}: expected {{class_name, config}}, found {}", what, value.described()));
  Described result;
  result.place = value.place();
  result.class_name = text_member(value, "class_name");
  if (result.class_name.empty()) fail_at(value.place(), "M23", fmt::format("{} has no 'class_name'", what));
  result.module = text_member(value, "module");
  const std::string registered = text_member(value, "registered_name");
  const bool keras = result.module.starts_with("keras") || result.module.starts_with("tf_keras") || result.module.starts_with("tensorflow");
  result.bare = result.class_name.substr(result.class_name.rfind('>') + 1);
  if (result.class_name != result.bare) result.registered_name = result.class_name;
  if (!registered.empty() && !(keras && registered == result.class_name)) result.registered_name = registered;
  // tf_keras registers some of Keras's own under these packages.
  for (const std::string_view package : {"keras>", "Keras>"}) {
    if (result.registered_name.starts_with(package)) result.registered_name.clear();
  }
  if (const Value* config = value.find("config"); config && !config->is_null()) result.config = *config;
  result.name = text_member(value, "name");
  if (result.name.empty() && result.config.is_map()) result.name = text_member(result.config, "name");
  return result;
}

/// Whether the file says, or leaves open, that the class is Keras's own.
bool may_be_keras(const Described& described) {
  const std::string& module = described.module;
  if (!described.registered_name.empty()) return false;
  return module.empty() || module == "builtins" || module.starts_with("keras") || module.starts_with("tf_keras") || module.starts_with("tensorflow");
}

class Reader {
 public:
  explicit Reader(const KerasReading& reading) : reading_(reading) {}

  KerasModel read(const Value& root) {
    const Described described = describe(root, "the model's config");
    KerasModel result;
    problems_.collect([&] { result.model = read_root(described, result.notes); });
    problems_.raise();
    return result;
  }

 private:
  std::unique_ptr<Model> read_root(const Described& described, std::vector<std::string>& notes) {
    const Value* mapped = reading_.custom_objects.find(described.registered_name, described.bare);
    if (mapped && mapped->is_string() && mapped->as_string() == "model") return own_model(described, notes);
    const std::string kind = model_kind(described);
    if (kind.empty()) fail_unknown_root(described);
    const Described* inner = &described;
    Described wrapped;
    if (const Value* found = wrapped_model(described)) {
      wrapped = describe(*found, "the wrapped model");
      notes.push_back(fmt::format("'{}' wraps '{}' as multi_gpu_model did; the wrapper is looked through", described.name, wrapped.name));
      inner = &wrapped;
    }
    std::unique_ptr<Model> model = read_model(*inner, inner->name);
    problems_.raise();
    for (const Model::Input& input : model->inputs) {
      if (!input.any_shape) continue;
      fail_at(inner->place, "M23", fmt::format("model '{}' was never built: its file does not tell the input's shape; give the model in the job", inner->name));
    }
    check_whole(*model);
    if (kind != described.class_name) {
      model->class_name = described.bare;
      model->registered_name = described.registered_name;
      model->class_config = described.config;
    }
    return model;
  }

  std::unique_ptr<Model> own_model(const Described& described, std::vector<std::string>& notes) {
    if (!reading_.own_model) fail_at(described.place, "M20", fmt::format("class '{}' stands for the job's model (restore.custom_objects), and the job has none; describe it under model:", described.bare));
    std::unique_ptr<Model> model = reading_.own_model();
    model->class_name = described.bare;
    model->registered_name = described.registered_name.empty() ? described.class_name : described.registered_name;
    model->class_config = described.config;
    if (!described.name.empty()) model->name = described.name;
    notes.push_back(fmt::format("class '{}' in the file is the job's own model", described.bare));
    return model;
  }

  [[noreturn]] void fail_unknown_root(const Described& described) {
    fail_without_graph(described);
    const std::string name = described.registered_name.empty() ? described.class_name : described.registered_name;
    std::string message = fmt::format("class '{}'{} is a subclassed model: the file keeps no forward graph of it. Declare it under model: in the job, and map it: restore: {{custom_objects: {{\"{}\": model}}}}", printable(described.bare), module_text(described), printable(name));
    fail_at(described.place, "M20", std::move(message));
  }

  /// A model of Keras's own without its layers is no subclass: it is malformed.
  static void fail_without_graph(const Described& described) {
    const bool model = described.class_name == "Functional" || described.class_name == "Model" || described.class_name == "Sequential";
    if (model && may_be_keras(described)) fail_at(described.place, "M23", fmt::format("{} '{}' has no 'layers', 'input_layers' in its config", described.class_name, described.name));
  }

  static std::string module_text(const Described& described) {
    if (!described.registered_name.empty() && !described.module.empty()) return fmt::format(" ({}, module '{}')", printable(described.registered_name), printable(described.module));
    if (!described.registered_name.empty()) return fmt::format(" ({})", printable(described.registered_name));
    if (!described.module.empty()) return fmt::format(" (module '{}')", printable(described.module));
    return {};
  }

  /// "Sequential" or "Functional" when the class is a model with a graph in its config: Keras's own, or one that the job maps to it.
  std::string model_kind(const Described& described) const {
    std::string name = may_be_keras(described) ? described.class_name : std::string();
    if (const Value* mapped = reading_.custom_objects.find(described.registered_name, described.bare); mapped && mapped->is_string()) name = mapped->as_string();
    const bool graph = described.config.is_list() || described.config.find("layers");
    if (name == "Sequential" && graph) return "Sequential";
    if ((name == "Functional" || name == "Model") && graph && described.config.find("input_layers")) return "Functional";
    return {};
  }

  /// The structure that multi_gpu_model left in files: Lambda layers that slice the inputs, one model called once a slice, concatenations of its results.
  const Value* wrapped_model(const Described& described) const {
    const Value* layers = described.config.find("layers");
    if (model_kind(described) != "Functional" || !layers || !layers->is_list()) return nullptr;
    const Value* model = nullptr;
    size_t slices = 0;
    for (const Value& layer : layers->as_list()) {
      const std::string type = text_member(layer, "class_name");
      const Value* config = layer.find("config");
      if (!config) return nullptr;
      if (type == "Lambda") {
        const Value* arguments = config->find("arguments");
        if (!arguments || !arguments->find("i") || !arguments->find("parts")) return nullptr;
        ++slices;
      } else if (type == "Sequential" || type == "Functional" || type == "Model") {
        if (model) return nullptr;
        model = &layer;
      } else if (type == "Concatenate") {
        const Value* axis = config->find("axis");
        if (!axis || !axis->is_integer() || axis->as_integer() != 0) return nullptr;
      } else if (type != "InputLayer") {
        return nullptr;
      }
    }
    return slices > 0 ? model : nullptr;
  }

  std::unique_ptr<Model> read_model(const Described& described, const std::string& path) {
    std::unique_ptr<Model> model = model_kind(described) == "Sequential" ? read_sequential(described, path) : read_functional(described, path);
    model->name = described.name.empty() ? snake_case(described.bare) : described.name;
    if (described.config.is_map()) {
      if (const Value* trainable = described.config.find("trainable"); trainable && trainable->is_boolean()) model->trainable = trainable->as_boolean();
      if (const Value* dtype = described.config.find("dtype")) model->dtype = policy_name(*dtype, path);
    }
    return model;
  }

  /// The policy's name, checked.
  static Value policy_name(const Value& value, const std::string& path) {
    try {
      policy_of(value);
    } catch (const Error& error) {
      fail_at(value.place(), "M22", fmt::format("layer '{}': dtype: {}", path, error.problems().front().message));
    }
    const Value* config = value.find("config");
    const Value* name = config ? config->find("name") : nullptr;
    return name ? *name : value;
  }

  Model::Input read_input(const Described& described, const std::string& path) {
    Model::Input input;
    input.name = described.name;
    const Value* shape = described.config.find("batch_shape");
    if (!shape) shape = described.config.find("batch_input_shape");
    if (shape) input.shape = row_shape(*shape, path);
    input.any_shape = !shape;
    input.dtype = DType::f32;
    if (const Value* dtype = described.config.find("dtype"); dtype && !dtype->is_null()) {
      try {
        input.dtype = policy_of(*dtype).compute;
      } catch (const Error& error) {
        fail_at(dtype->place(), "M22", fmt::format("input '{}': dtype: {}", path, error.problems().front().message));
      }
    }
    for (const char* kind : {"sparse", "ragged"}) {
      const Value* set = described.config.find(kind);
      if (set && set->is_boolean() && set->as_boolean()) fail_at(set->place(), "M22", fmt::format("input '{}' is {}; only dense tensors are read here", path, kind));
    }
    return input;
  }

  static Shape row_shape(const Value& value, const std::string& path) {
    const Value* items = value.find("items");  // {"class_name": "__tuple__", "items": [...]}
    const Value& list = items ? *items : value;
    if (!list.is_list() || list.size() == 0) fail_at(value.place(), "M23", fmt::format("input '{}': its shape is {}, expected a list", path, list.described()));
    Shape shape;
    for (size_t i = 1; i < list.size(); ++i) {
      const Value& axis = list.as_list()[i];
      if (axis.is_null()) {
        shape.push_back(-1);
      } else if (axis.is_integer() && axis.as_integer() > 0) {
        shape.push_back(axis.as_integer());
      } else {
        fail_at(value.place(), "M23", fmt::format("input '{}': an axis of its shape is {}", path, axis.described()));
      }
    }
    return shape;
  }

  std::unique_ptr<Model> read_sequential(const Described& described, const std::string& path) {
    auto model = std::make_unique<Model>();
    model->source = Model::Source::file;
    model->class_name = "Sequential";
    // Keras before 2.2.3 wrote the list alone.
    const Value& layers = described.config.is_list() ? described.config : member(described.config, "layers", fmt::format("model '{}'", path));
    if (!layers.is_list() || layers.size() == 0) fail_at(layers.place(), "M23", fmt::format("model '{}' has no layers", path));
    std::vector<std::string> names;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Value& value = layers.as_list()[i];
      problems_.collect([&] {
        const Described part = describe(value, fmt::format("layer {} of '{}'", i, path));
        const std::string own = join_names(path, part.name);
        if (i == 0) {
          const bool input_layer = may_be_keras(part) && part.class_name == "InputLayer";
          if (input_layer) {
            model->inputs.push_back(read_input(part, own));
            return;
          }
          model->inputs.push_back(implied_input(described, part, path));
        }
        check_name(names, part, path);
        Model::Call call;
        call.layer = static_cast<int>(model->layers.size());
        call.inputs = {{static_cast<int>(model->calls.size()) - 1, 0}};
        call.place = part.place;
        model->layers.push_back(read_layer(part, own));
        model->calls.push_back(std::move(call));
      });
    }
    if (!problems_.empty()) return model;
    model->outputs.push_back({"", {static_cast<int>(model->calls.size()) - 1, 0}});
    model->outputs.front().key = keras_output_names(*model).front();
    model->arrange(Model::Order::keras);
    return model;
  }

  /// The input of a Sequential without an Input layer: from build_input_shape (Keras 3) or the first layer's batch_input_shape (Keras 2).
  Model::Input implied_input(const Described& model, const Described& first, const std::string& path) {
    Model::Input input;
    const Value* shape = first.config.find("batch_input_shape");
    input.name = shape ? first.name + "_input" : "input_layer";
    if (!shape) shape = first.config.find("batch_shape");
    if (!shape && model.config.is_map()) shape = model.config.find("build_input_shape");
    input.any_shape = !shape || shape->is_null();
    if (!input.any_shape) input.shape = row_shape(*shape, path);
    return input;
  }

  void check_name(std::vector<std::string>& names, const Described& part, const std::string& path) {
    if (part.name.empty()) fail_at(part.place, "M23", fmt::format("a {} in '{}' has no name", printable(part.class_name), path));
    if (std::find(names.begin(), names.end(), part.name) != names.end()) {
      fail_at(part.place, "M23", fmt::format("layer name '{}' is used twice in '{}': duplicate", printable(part.name), path));
    }
    names.push_back(part.name);
  }

  std::unique_ptr<Model> read_functional(const Described& described, const std::string& path) {
    auto model = std::make_unique<Model>();
    model->source = Model::Source::file;
    const Value& layers = member(described.config, "layers", fmt::format("model '{}'", path));
    if (!layers.is_list()) fail_at(layers.place(), "M23", fmt::format("model '{}': its layers are {}", path, layers.described()));
    KerasNodes nodes(path);
    std::vector<std::string> names;
    std::vector<std::pair<Described, Model::Input>> input_layers;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Value& value = layers.as_list()[i];
      problems_.collect([&] {
        const Described part = describe(value, fmt::format("layer {} of '{}'", i, path));
        const std::string own = join_names(path, part.name);
        check_name(names, part, path);
        if (may_be_keras(part) && part.class_name == "InputLayer") {
          input_layers.emplace_back(part, read_input(part, own));
          return;
        }
        const Value* inbound = value.find("inbound_nodes");
        // The layer stands before it is read, so that what reads it does not fail for its sake.
        const int layer = static_cast<int>(model->layers.size());
        model->layers.push_back(nullptr);
        nodes.add_layer(part.name, layer, !model_kind(part).empty());
        if (inbound) nodes.read(part.name, *inbound, part.place);
        model->layers[static_cast<size_t>(layer)] = read_layer(part, own);
      });
    }
    const std::vector<KerasNodes::Named> inputs = KerasNodes::named_tensors(member(described.config, "input_layers", fmt::format("model '{}'", path)), path);
    for (const KerasNodes::Named& named : inputs) {
      const auto found = std::find_if(input_layers.begin(), input_layers.end(), [&](const auto& layer) { return layer.first.name == named.tensor.layer; });
      if (found == input_layers.end()) {
        problems_.add(problem_at(described.place, "M23", fmt::format("model '{}': input_layers names '{}', which is no Input layer{}", path, printable(named.tensor.layer), did_you_mean(named.tensor.layer, names))));
        continue;
      }
      Model::Input& input = model->inputs.emplace_back(found->second);
      input.key = named.key;
      nodes.add_input(input.name, static_cast<int>(model->inputs.size()) - 1);
    }
    const std::vector<KerasNodes::Named> outputs = KerasNodes::named_tensors(member(described.config, "output_layers", fmt::format("model '{}'", path)), path);
    for (const KerasNodes::Named& named : outputs) nodes.note_use(named.tensor);
    problems_.collect([&] { nodes.connect(*model, nested_keys(layers)); });
    for (const KerasNodes::Named& named : outputs) {
      problems_.collect([&] { model->outputs.push_back({named.key, nodes.resolve(named.tensor, "output_layers", described.place)}); });
      if (!named.key.empty()) model->dict_outputs = true;
    }
    if (outputs.empty()) problems_.add(problem_at(described.place, "M23", fmt::format("model '{}' has no outputs", path)));
    if (!problems_.empty()) return model;
    if (!model->dict_outputs) {
      const std::vector<std::string> keys = keras_output_names(*model);
      for (size_t i = 0; i < keys.size(); ++i) model->outputs[i].key = keys[i];
    }
    model->arrange(Model::Order::keras);
    return model;
  }

  /// Keys of the inputs of models inside that take a mapping, by the model's name.
  static std::map<std::string, std::vector<std::string>> nested_keys(const Value& layers) {
    std::map<std::string, std::vector<std::string>> result;
    for (const Value& layer : layers.as_list()) {
      const Value* config = layer.find("config");
      const Value* inputs = config ? config->find("input_layers") : nullptr;
      if (!inputs || !inputs->is_map()) continue;
      std::vector<std::string>& keys = result[text_member(layer, "name")];
      for (const auto& [key, tensor] : inputs->as_map()) keys.push_back(key);
    }
    return result;
  }

  std::unique_ptr<Layer> read_layer(const Described& part, const std::string& path) {
    const Value* mapped = reading_.custom_objects.find(part.registered_name, part.bare);
    if (!model_kind(part).empty()) {
      std::unique_ptr<Model> model = read_model(part, path);
      model->name = part.name;
      return model;
    }
    std::unique_ptr<Layer> layer;
    if (mapped) {
      if (!mapped->is_string() || mapped->as_string() == "model") {
        fail_at(mapped->place(), "M24", fmt::format("restore.custom_objects: class '{}' is a layer ('{}' in the file), and {} is no layer type of the job", printable(part.bare), path, mapped->described()));
      }
      const LayerRegistry::Make* make = reading_.registry.find(mapped->as_string());
      if (!make) {
        fail_at(mapped->place(), "M24", fmt::format("restore.custom_objects: '{}' stands for layer type '{}', which the job does not have{}", printable(part.bare), printable(mapped->as_string()), did_you_mean(mapped->as_string(), reading_.registry.types())));
      }
      layer = (*make)();
    } else {
      layer = make_unmapped(part, path);
    }
    if (auto* custom = dynamic_cast<CustomLayer*>(layer.get())) {
      bind(*custom, part, path);
    } else {
      read_config(*layer, part, path);
    }
    layer->name = part.name;
    if (!layer->dtype.is_null()) layer->dtype = policy_name(layer->dtype, path);
    if (auto* custom = dynamic_cast<CustomLayer*>(layer.get())) custom->inner();
    return layer;
  }

  /// A class without an entry in custom_objects: Keras's own, or one that we wrote ourselves, or one of the job's types by its very name.
  std::unique_ptr<Layer> make_unmapped(const Described& part, const std::string& path) {
    const bool ours = part.registered_name.starts_with("lockstep>");
    std::string type = part.bare;
    if (ours && type.starts_with("Borrowing")) type = type.substr(9);
    const LayerRegistry::Make* make = reading_.registry.find(type);
    std::unique_ptr<Layer> layer = make ? (*make)() : nullptr;
    const bool custom = dynamic_cast<CustomLayer*>(layer.get()) != nullptr;
    if (layer && (may_be_keras(part) || ours || custom)) return layer;
    if (may_be_keras(part) && (part.class_name == "Lambda" || holds_code(part.config))) {
      fail_at(part.place, "M21", fmt::format("layer '{}' (Lambda) contains Python code and cannot be loaded; declare a layer that computes the same, and map it: restore: {{custom_objects: {{Lambda: ...}}}}", path));
    }
    if (may_be_keras(part)) {
      fail_without_graph(part);
      const bool operation = part.module.find(".ops") != std::string::npos || part.class_name == "TFOpLambda" || part.class_name == "SlicingOpLambda" || part.class_name == "TensorFlowOpLayer";
      const bool known_module = !part.module.empty() && part.module != "builtins";
      if (operation || known_module || (reading_.is_keras_class && reading_.is_keras_class(part.class_name))) {
        std::string hint = nearest(part.class_name, reading_.registry.types());
        if (!hint.empty()) hint = fmt::format("; nearest: '{}'", hint);
        fail_at(part.place, "M22", fmt::format("layer '{}': {} '{}' of Keras is not built in here{} ('lockstep list layers')", path, operation ? "the operation" : "class", printable(part.class_name), hint));
      }
    }
    // The layer's path as the file's weights know it: without the outermost model.
    const std::string inside = path.substr(path.find('/') + 1);
    std::string message = fmt::format("class '{}'{} of layer '{}' is not known: it is not Keras's, and the job does not declare it (custom_layers, restore.custom_objects). To declare it:\n{}", printable(part.bare), module_text(part), path,
                                      custom_layer_stub(part.bare, part.registered_name, part.config, inside, reading_.weights));
    fail_at(part.place, "M20", std::move(message));
  }

  static bool holds_code(const Value& value) {
    if (value.is_map()) {
      if (text_member(value, "class_name") == "__lambda__") return true;
      return std::any_of(value.as_map().begin(), value.as_map().end(), [](const auto& part) { return holds_code(part.second); });
    }
    return value.is_list() && std::any_of(value.as_list().begin(), value.as_list().end(), holds_code);
  }

  void bind(CustomLayer& layer, const Described& part, const std::string& path) {
    layer.class_name = part.bare;
    layer.registered_name = part.registered_name.empty() ? part.class_name : part.registered_name;
    Value config = Value::map();
    bool own = false;
    if (part.config.is_map()) {
      for (const auto& [key, value] : part.config.as_map()) {
        // Keras's base keys that say nothing about the class.
        const bool empty = (key == "dynamic" || key == "activity_regularizer") && (value.is_null() || (value.is_boolean() && !value.as_boolean()));
        if (empty || key == "batch_input_shape" || key == "autocast") continue;
        if (key != "name" && key != "trainable" && key != "dtype") own = true;
        config.set(key, value);
      }
    }
    config.with_place(part.place);
    layer.values_from_job = !own && !layer.definition().parameters.empty();
    try {
      layer.check_parameters(config, {"name", "trainable", "dtype"}, fmt::format("class '{}' of layer '{}'", part.bare, path));
      Fields fields;
      layer.base_fields(fields);
      layer.fields(fields);
      read_fields(config, fields, path);
    } catch (const Error& error) {
      fail_as(error, "M24", part, path);
    }
  }

  void read_config(Layer& layer, const Described& part, const std::string& path) {
    Fields fields;
    layer.base_fields(fields);
    layer.fields(fields);
    std::vector<std::string> known = fields.names();
    known.insert(known.end(), fields.ignored().begin(), fields.ignored().end());
    Value config = Value::map();
    for (const auto& [key, value] : part.config.as_map()) {
      // A key that is not known and that turns nothing on.
      const bool off = value.is_null() || (value.is_boolean() && !value.as_boolean());
      if (off && std::find(known.begin(), known.end(), key) == known.end()) continue;
      if (key == "build_config") continue;
      config.set(key, key == "name" ? value : with_custom_objects(value));
    }
    config.with_place(part.config.place());
    if (holds_code(config)) fail_at(part.place, "M21", fmt::format("layer '{}' ({}) contains Python code and cannot be loaded", path, part.class_name));
    try {
      read_fields(config, fields, fmt::format("layer '{}' ({})", path, part.class_name));
    } catch (const Error& error) {
      fail_as(error, "M22", part, path);
    }
  }

  /// A file's problem: exit code and place of the file, the layer's path in front.
  [[noreturn]] static void fail_as(const Error& error, const std::string& code, const Described& part, const std::string& path) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      problem.code = code;
      if (problem.place.empty()) problem.place = part.place.text();
      if (problem.message.find("'" + path + "'") == std::string::npos) problem.message = fmt::format("layer '{}' ({}): {}", path, part.class_name, problem.message);
    }
    throw Error(std::move(problems));
  }

  /// Functions and objects of the file that the job maps: `activation: "my_package>gelu"`, {class_name: function, config: "my_package>gelu"}.
  Value with_custom_objects(const Value& value) const {
    const auto target = [&](std::string_view name) -> const Value* {
      const Value* found = reading_.custom_objects.find(name, name.substr(name.rfind('>') + 1));
      const bool layer = found && found->is_string() && (found->as_string() == "model" || reading_.registry.find(found->as_string()));
      return layer ? nullptr : found;
    };
    if (value.is_string()) {
      const Value* found = target(value.as_string());
      return found ? *found : value;
    }
    if (value.is_list()) {
      Value result = value;
      for (Value& part : result.as_list()) part = with_custom_objects(part);
      return result;
    }
    if (!value.is_map()) return value;
    const Value* config = value.find("config");
    const std::string class_name = text_member(value, "class_name");
    if (class_name == "function" && config && config->is_string()) {
      const Value* found = target(config->as_string());
      return found ? *found : *config;
    }
    const std::string registered = text_member(value, "registered_name");
    const Value* found = class_name.empty() ? nullptr : target(registered.empty() ? class_name : registered);
    if (found && found->is_string()) {
      Value result = value;
      result.set("class_name", *found);
      result.set("registered_name", Value());
      return result;
    }
    if (found) return *found;
    Value result = value;
    for (auto& [key, part] : result.as_map()) part = with_custom_objects(part);
    return result;
  }

  const KerasReading& reading_;
  Problems problems_;
};

}  // namespace

KerasModel build_from_keras(const Value& config, const KerasReading& reading) { return Reader(reading).read(config); }

}  // namespace lockstep
