#include <set>

#include <fmt/format.h>

#include "layers/custom/custom_layer.h"
#include "layers/keras/keras_config.h"
#include "layers/names/names.h"
#include "layers/shapes.h"

namespace lockstep {

namespace {

std::string join_names(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

Value list_of(const Shape& shape) {
  Value list = Value::list();
  for (int64_t axis : shape) list.push_back(axis < 0 ? Value() : Value(axis));
  return list;
}

Value policy_object(const Value& dtype) {
  std::string name = "float32";
  if (dtype.is_string()) name = dtype.as_string();
  if (dtype.is_map()) name = dtype.at("config").at("name").as_string();
  return Value(Value::Map{{"module", "keras"}, {"class_name", "DTypePolicy"}, {"config", Value(Value::Map{{"name", name}})}, {"registered_name", Value()}});
}

class Writer {
 public:
  explicit Writer(Model& root) : root_(root), shapes_(trace_shapes(root, 3)) {}

  Value write(const Value& compile_config) {
    Value result = model(root_, "", root_.dtype_policy, shapes_.inputs);
    if (!root_.registered_name.empty()) {
      // A class of the user's own builds its layers by being called: its file tells the shapes to build it with.
      result.set("build_config", Value(Value::Map{{"input_shape", build_shape()}}));
    }
    if (!compile_config.is_null()) result.set("compile_config", compile_config);
    return result;
  }

 private:
  Value build_shape() const {
    if (shapes_.inputs.size() == 1) return list_of(shapes_.inputs.front().shape);
    Value list = Value::list();
    for (const TensorType& input : shapes_.inputs) list.push_back(list_of(input.shape));
    return list;
  }

  /// A tensor inside a model: its type, and [layer, node, tensor].
  struct Tensor {
    TensorType type;
    Value history;
  };

  /// Where the calls of a model stand among its layers' calls.
  struct Calls {
    std::vector<int> node;  ///< of each call, the number among its layer's
    explicit Calls(const Model& model) {
      std::vector<int> counts(model.layers.size(), 0);
      for (const Model::Call& call : model.calls) node.push_back(counts[static_cast<size_t>(call.layer)]++);
    }
  };

  Tensor tensor(const Model& model, const Calls& calls, const std::string& path, const std::vector<TensorType>& inputs, const Model::Reference& from) const {
    if (from.call < 0) {
      const auto index = static_cast<size_t>(from.index);
      return {inputs[index], Value(Value::List{model.inputs[index].name, 0, 0})};
    }
    const Model::Call& call = model.calls[static_cast<size_t>(from.call)];
    const std::string& name = model.layers[static_cast<size_t>(call.layer)]->name;
    const int node = calls.node[static_cast<size_t>(from.call)];
    const auto& traced = shapes_.calls.at(join_names(path, name));
    return {traced[static_cast<size_t>(node)][static_cast<size_t>(from.index)], Value(Value::List{name, node, from.index})};
  }

  static Value keras_tensor(const Tensor& tensor) {
    Value config(Value::Map{{"shape", list_of(tensor.type.shape)}, {"dtype", name_of(tensor.type.dtype)}, {"keras_history", tensor.history}});
    return Value(Value::Map{{"class_name", "__keras_tensor__"}, {"config", std::move(config)}});
  }

  Value model(const Model& model, const std::string& path, const Value& policy, const std::vector<TensorType>& inputs) {
    Value result = Value::map();
    const bool own_class = !model.registered_name.empty();
    const bool sequential = model.class_name == "Sequential";
    Value config = own_class ? model.class_config : sequential ? sequential_config(model, path, policy, inputs) : functional_config(model, path, policy, inputs);
    if (own_class && !config.is_map()) config = Value(Value::Map{{"name", model.name}});
    result.set("module", own_class ? Value() : Value(sequential ? "keras" : "keras.src.models.functional"));
    result.set("class_name", model.class_name);
    result.set("config", std::move(config));
    result.set("registered_name", own_class ? Value(model.registered_name) : sequential ? Value() : Value("Functional"));
    return result;
  }

  static Value input_layer(const Model::Input& input, const TensorType& type, bool in_functional) {
    Value config(Value::Map{{"batch_shape", list_of(type.shape)}, {"dtype", name_of(type.dtype)}, {"sparse", false}, {"ragged", false}, {"name", input.name}, {"optional", false}});
    Value result(Value::Map{{"module", "keras.layers"}, {"class_name", "InputLayer"}, {"config", std::move(config)}, {"registered_name", Value()}});
    if (in_functional) {
      result.set("name", input.name);
      result.set("inbound_nodes", Value::list());
    }
    return result;
  }

  Value sequential_config(const Model& model, const std::string& path, const Value& policy, const std::vector<TensorType>& inputs) {
    Value layers = Value::list();
    layers.push_back(input_layer(model.inputs.front(), inputs.front(), false));
    const Calls calls(model);
    std::vector<TensorType> given = inputs;
    for (size_t i = 0; i < model.calls.size(); ++i) {
      const Layer& layer = *model.layers[static_cast<size_t>(model.calls[i].layer)];
      layers.push_back(this->layer(layer, join_names(path, layer.name), policy, given));
      given = shapes_.calls.at(join_names(path, layer.name)).front();
    }
    return Value(Value::Map{{"name", model.name}, {"trainable", model.trainable}, {"dtype", policy_object(policy)}, {"layers", std::move(layers)}, {"build_input_shape", list_of(inputs.front().shape)}});
  }

  Value functional_config(const Model& model, const std::string& path, const Value& policy, const std::vector<TensorType>& inputs) {
    const Calls calls(model);
    Value layers = Value::list();
    for (const Model::Part& part : model.parts()) {
      const auto index = static_cast<size_t>(part.index);
      if (part.is_input) {
        layers.push_back(input_layer(model.inputs[index], inputs[index], true));
        continue;
      }
      const Layer& layer = *model.layers[index];
      Value nodes = Value::list();
      std::vector<TensorType> first;
      for (size_t i = 0; i < model.calls.size(); ++i) {
        const Model::Call& call = model.calls[i];
        if (call.layer != part.index) continue;
        std::vector<Tensor> tensors;
        for (const Model::Reference& from : call.inputs) tensors.push_back(tensor(model, calls, path, inputs, from));
        if (nodes.size() == 0) {
          for (const Tensor& each : tensors) first.push_back(each.type);
        }
        nodes.push_back(node(layer, tensors, call.training));
      }
      Value described = this->layer(layer, join_names(path, layer.name), policy, first);
      described.set("name", layer.name);
      described.set("inbound_nodes", std::move(nodes));
      layers.push_back(std::move(described));
    }
    Value input_layers;
    const bool keyed = !model.inputs.empty() && !model.inputs.front().key.empty();
    for (const Model::Input& input : model.inputs) {
      Value history(Value::List{input.name, 0, 0});
      if (keyed) {
        input_layers.set(input.key, std::move(history));
      } else if (model.inputs.size() == 1) {
        input_layers = std::move(history);
      } else {
        input_layers.push_back(std::move(history));
      }
    }
    // Keras names outputs by their layers; other names need a mapping.
    bool named = model.dict_outputs;
    if (&model == &root_) {
      const std::vector<std::string> names = keras_output_names(model);
      for (size_t i = 0; i < names.size(); ++i) named = named || names[i] != model.outputs[i].key;
    }
    Value output_layers;
    for (const Model::Output& output : model.outputs) {
      Value history = tensor(model, calls, path, inputs, output.from).history;
      if (named) {
        output_layers.set(output.key, std::move(history));
      } else if (model.outputs.size() == 1) {
        output_layers = std::move(history);
      } else {
        output_layers.push_back(std::move(history));
      }
    }
    return Value(Value::Map{{"name", model.name}, {"trainable", model.trainable}, {"layers", std::move(layers)}, {"input_layers", std::move(input_layers)}, {"output_layers", std::move(output_layers)}});
  }

  static Value node(const Layer& layer, const std::vector<Tensor>& tensors, const std::optional<bool>& training) {
    Value args = Value::list();
    const auto* nested = dynamic_cast<const Model*>(&layer);
    if (nested && !nested->inputs.empty() && !nested->inputs.front().key.empty()) {
      Value mapping = Value::map();
      for (size_t i = 0; i < tensors.size(); ++i) mapping.set(nested->inputs[i].key, keras_tensor(tensors[i]));
      args.push_back(std::move(mapping));
    } else if (tensors.size() == 1 && !merges(layer)) {
      args.push_back(keras_tensor(tensors.front()));
    } else {
      Value list = Value::list();
      for (const Tensor& each : tensors) list.push_back(keras_tensor(each));
      args.push_back(std::move(list));
    }
    Value kwargs = Value::map();
    if (training) kwargs.set("training", *training);
    return Value(Value::Map{{"args", std::move(args)}, {"kwargs", std::move(kwargs)}});
  }

  /// Layers that take a list even of one.
  static bool merges(const Layer& layer) {
    static const std::set<std::string_view> types = {"Add", "Multiply", "Subtract", "Average", "Maximum", "Minimum", "Concatenate", "Dot"};
    return types.contains(layer.type());
  }

  Value layer(const Layer& layer, const std::string& path, const Value& outer_policy, const std::vector<TensorType>& inputs) {
    const Value& policy = layer.dtype.is_null() ? outer_policy : layer.dtype;
    Value result;
    if (const auto* nested = dynamic_cast<const Model*>(&layer)) {
      result = model(*nested, path, policy, inputs);
    } else {
      const std::string registered = registered_name_of(layer);
      result.set("module", registered.empty() ? Value("keras.layers") : Value());
      result.set("class_name", class_name_of(layer));
      result.set("config", config(layer, policy));
      result.set("registered_name", registered.empty() ? Value() : Value(registered));
    }
    Value shapes = Value::list();
    for (const TensorType& input : inputs) shapes.push_back(list_of(input.shape));
    const bool functional = result.at("class_name").as_string() == "Functional";
    if (!inputs.empty()) result.set("build_config", Value(Value::Map{{"input_shape", functional ? Value() : inputs.size() == 1 && !merges(layer) ? shapes.as_list().front() : shapes}}));
    return result;
  }

  static Value config(const Layer& layer, const Value& policy) {
    // Describing members needs them to be writable; they are only read.
    Layer& described = const_cast<Layer&>(layer);
    Fields base;
    described.base_fields(base);
    Value result = write_fields(base);
    result.set("dtype", policy_object(policy));
    Fields own;
    described.fields(own);
    const Value members = write_fields(own);
    for (const auto& [key, value] : members.as_map()) result.set(key, value);
    if (layer.type() == "SyncBatchNormalization") result.set("synchronized", true);
    return result;
  }

  Model& root_;
  ModelShapes shapes_;
};

}  // namespace

Value to_keras_config(Model& model, const Value& compile_config) { return Writer(model).write(compile_config); }

}  // namespace lockstep
