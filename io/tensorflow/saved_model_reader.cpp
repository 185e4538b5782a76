#include "io/tensorflow/saved_model_reader.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/json/json.h"
#include "io/model_file/input_file.h"
#include "io/model_file/keras_classes.h"
#include "io/model_file/keras_config.h"
#include "io/tensorflow/checkpoint_reader.h"
#include "io/tensorflow/graph_model.h"
#include "io/tensorflow/object_graph.h"
#include "messages.pb.h"

namespace lockstep::tensorflow {
namespace {

// A protobuf message is at most 2 GiB.
constexpr uint64_t max_message_bytes = (uint64_t{1} << 31) - 1;

/// An object that Keras described in JSON.
struct Described {
  size_t node = 0;
  std::string path;  ///< "root.layer-1"
  std::string identifier;
  Value metadata;
};

template <class Message>
Message read_message(const std::string& path, const char* code) {
  Message message;
  if (!message.ParseFromString(InputFile(path, code).read_all(max_message_bytes))) {
    throw Error("S20", path, "is damaged or truncated: not the protocol buffer that was expected");
  }
  return message;
}

std::vector<Described> described_objects(const std::string& folder, const messages::SavedObjectGraph& objects) {
  std::vector<Described> found;
  const std::string path = folder + "/keras_metadata.pb";
  const auto add = [&](size_t node, const std::string& node_path, const std::string& identifier, const std::string& metadata, const std::string& place) {
    if (metadata.empty() || identifier == "_tf_keras_metric") return;
    if (metadata.size() > max_config_bytes) throw Error("S20", place, fmt::format("the metadata of '{}' is {}; the limit is {}", printable(node_path), text_of_bytes(metadata.size()), text_of_bytes(max_config_bytes)));
    found.push_back({node, node_path, identifier, read_json_text(place + ": " + printable(node_path), metadata, "S20")});
  };
  if (std::filesystem::exists(path)) {
    const auto metadata = read_message<messages::KerasMetadata>(path, "S02");
    if (metadata.nodes_size() == 0) throw Error("S20", path, "is damaged: it describes no objects");
    for (const auto& node : metadata.nodes()) {
      if (node.node_id() < 0 || node.node_id() >= objects.nodes_size()) {
        throw Error("S19", path, fmt::format("'{}' is node {}, but saved_model.pb has {} nodes", printable(node.node_path()), node.node_id(), objects.nodes_size()));
      }
      add(static_cast<size_t>(node.node_id()), node.node_path(), node.identifier(), node.metadata(), path);
    }
    return found;
  }
  for (int i = 0; i < objects.nodes_size(); ++i) {
    const auto& user = objects.nodes(i).user_object();
    if (user.metadata().starts_with('{')) add(static_cast<size_t>(i), i == 0 ? "root" : fmt::format("node {}", i), user.identifier(), user.metadata(), folder + "/saved_model.pb");
  }
  return found;
}

std::string text_member(const Value& value, std::string_view key) {
  const Value* member = value.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

bool is_model(const std::string& identifier) { return identifier == "_tf_keras_model" || identifier == "_tf_keras_network" || identifier == "_tf_keras_sequential"; }

KnownObjects known_objects(const messages::SavedObjectGraph& objects, const std::vector<Described>& described) {
  KnownObjects known;
  for (const Described& object : described) {
    KnownObject& entry = known[object.node];
    entry.name = text_member(object.metadata, "name");
    // The root's name is no part of its layers' paths.
    if (object.node != 0) entry.kind = is_model(object.identifier) ? KnownObject::Kind::model : KnownObject::Kind::layer;
    const Value* trainable = object.metadata.find("trainable");
    entry.trainable = trainable == nullptr || !trainable->is_boolean() || trainable->as_boolean();
  }
  for (int i = 0; i < objects.nodes_size(); ++i) {
    if (objects.nodes(i).has_variable()) known[static_cast<size_t>(i)].trainable = objects.nodes(i).variable().trainable();
  }
  return known;
}

// "root.layer-1.cell" in the layers' names: "rnn/cell".
std::string named_path(const std::string& path, const std::map<std::string, std::string>& names) {
  std::string text;
  for (size_t dot = path.find('.'); dot != std::string::npos;) {
    const size_t next = path.find('.', dot + 1);
    const std::string prefix = path.substr(0, next);
    const auto name = names.find(prefix);
    if (!text.empty()) text += '/';
    text += name != names.end() ? name->second : path.substr(dot + 1, next == std::string::npos ? next : next - dot - 1);
    dot = next;
  }
  return text;
}

void describe(StoredModel& model, const std::vector<Described>& described, const std::string& folder) {
  std::map<std::string, std::string> names;
  for (const Described& object : described) names.emplace(object.path, text_member(object.metadata, "name"));
  for (const Described& object : described) {
    const std::string class_name = text_member(object.metadata, "class_name");
    const Value* config = object.metadata.find("config");
    if (!class_name.empty() && !is_keras_class(class_name)) {
      Value custom = Value::map();
      custom.with_place(object.metadata.place());
      custom.set("class_name", class_name);
      custom.set("config", config != nullptr ? without_tuples(*config) : Value::map());
      custom.set("path", named_path(object.path, names));
      model.custom_objects.push_back(std::move(custom));
    }
    if (object.node != 0) continue;
    if (config != nullptr && config->find("layers") != nullptr) {
      Value architecture = Value::map();
      architecture.with_place(object.metadata.place());
      architecture.set("class_name", class_name);
      architecture.set("config", without_tuples(*config));
      model.architecture = std::move(architecture);
    }
    if (const Value* training = object.metadata.find("training_config"); training != nullptr && training->is_map()) model.compile_config = compile_config_of(without_tuples(*training));
    if (const std::string version = text_member(object.metadata, "keras_version"); !version.empty()) set_keras_version(model, version, "S08", folder + "/keras_metadata.pb");
  }
}

std::string optimizer_class_of(const StoredModel& model) {
  const Value* optimizer = model.compile_config ? model.compile_config->find("optimizer") : nullptr;
  return optimizer != nullptr ? text_member(*optimizer, "class_name") : "";
}

std::string contents_of(const std::string& folder) {
  std::string text;
  size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (++count > 8) return text + ", ...";
    text += (text.empty() ? "" : ", ") + printable(entry.path().filename().string());
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

StoredModel read_saved_model(const std::string& folder) {
  const std::string graph_path = folder + "/saved_model.pb";
  for (const char* part : {"saved_model.pb", "variables"}) {
    if (!std::filesystem::exists(folder + "/" + part)) throw Error("S01", folder, fmt::format("is not a SavedModel: {} is missing; found: {}", part, contents_of(folder)));
  }
  const auto saved = read_message<messages::SavedModel>(graph_path, "S01");
  if (saved.meta_graphs_size() == 0) throw Error("S20", graph_path, "is damaged: it has no graph");
  const messages::MetaGraph* graph = &saved.meta_graphs(0);
  for (const auto& candidate : saved.meta_graphs()) {
    for (const auto& tag : candidate.meta_info_def().tags()) {
      if (tag == "serve") graph = &candidate;
    }
  }

  StoredModel model;
  model.file = folder;
  model.format = "saved-model";
  model.rule = NamingRule::names;
  auto bundle = std::make_shared<const Bundle>(folder + "/variables/variables");
  if (!bundle->tensors().contains(object_graph_key)) {
    add_named_variables(model, std::move(bundle));
    return model;
  }
  const auto& objects = graph->object_graph_def();
  const ObjectGraph variables = read_object_graph(*bundle);
  const auto described = described_objects(folder, objects);
  describe(model, described, folder);
  add_graph(model, std::move(bundle), variables, known_objects(objects, described), optimizer_class_of(model));
  if (described.empty()) model.notes.push_back("the file has variables but no layers: describe the model in the job");
  return model;
}

}  // namespace lockstep::tensorflow
