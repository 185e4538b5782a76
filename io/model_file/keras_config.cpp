#include "io/model_file/keras_config.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/model_file/keras_classes.h"
#include "io/model_file/optimizer_names.h"

namespace lockstep {
namespace {

constexpr int newest_major = 3;
constexpr int newest_minor = 15;
constexpr int newest_tf_keras_minor = 21;

bool is_keras_module(const std::string& name) {
  for (const std::string_view own : {"keras", "tf_keras"}) {
    if (name == own || name.starts_with(std::string(own) + ".")) return true;
  }
  return false;
}

void add_custom_classes(const Value& model, const std::string& path, std::vector<Value>& found) {
  const Value* class_name = model.find("class_name");
  const Value* config = model.find("config");
  if (class_name == nullptr || !class_name->is_string()) return;
  const Value* registered = model.find("registered_name");
  const bool is_registered = registered != nullptr && registered->is_string() && registered->as_string().find('>') != std::string::npos;
  const std::string& name = is_registered ? registered->as_string() : class_name->as_string();
  // A class of somebody's module may have the name of one of Keras's; Keras's modules have operations beside layers.
  const Value* module = model.find("module");
  const bool has_module = module != nullptr && module->is_string();
  const bool is_own = has_module ? is_keras_module(module->as_string()) : is_keras_class(name);
  if (!is_own) {
    Value object = Value::map();
    object.with_place(class_name->place());
    object.set("class_name", name);
    if (has_module) object.set("module", *module);
    object.set("config", config != nullptr ? *config : Value::map());
    object.set("path", path);
    found.push_back(std::move(object));
  }
  const Value* layers = config != nullptr ? config->find("layers") : nullptr;
  if (layers == nullptr || !layers->is_list()) return;
  for (const Value& layer : layers->as_list()) {
    const Value* layer_config = layer.find("config");
    const Value* layer_name = layer_config != nullptr ? layer_config->find("name") : nullptr;
    if (layer_name == nullptr || !layer_name->is_string()) layer_name = layer.find("name");
    const std::string text = layer_name != nullptr && layer_name->is_string() ? layer_name->as_string() : "";
    add_custom_classes(layer, path.empty() ? text : path + "/" + text, found);
  }
}

}  // namespace

void set_keras_version(StoredModel& model, const std::string& version, std::string_view code, const std::string& place) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  const bool has_minor = first.ec == std::errc() && first.ptr != end && *first.ptr == '.';
  const auto second = has_minor ? std::from_chars(first.ptr + 1, end, minor) : std::from_chars_result{end, std::errc::invalid_argument};
  const std::string shown = printable(version);
  if (second.ec != std::errc()) throw Error(std::string(code), place, fmt::format("keras_version is '{}', which is no version of Keras", shown));
  if (major < 2) throw Error(std::string(code), place, fmt::format("keras_version is {}: a Keras 1 file is not supported; save it again with Keras 2.3 or newer", shown));
  if (major > newest_major) {
    throw Error(std::string(code), place, fmt::format("keras_version is {}; this program reads Keras 2 and 3. Save the model with one of these", shown));
  }
  model.version = version;
  model.semantics = major;
  model.framework = major == 3 ? "keras" : "tf_keras";
  const int newest = major == 3 ? newest_minor : newest_tf_keras_minor;
  if (minor > newest) model.notes.push_back(fmt::format("written by Keras {}, newer than {}.{}, the newest that was tried", shown, major, newest));
}

Value compile_config_of(Value training_config) {
  if (const Value* optimizer = training_config.find("optimizer_config")) {
    Value renamed = *optimizer;
    training_config.erase("optimizer_config");
    training_config.set("optimizer", std::move(renamed));
  }
  if (Value* optimizer = training_config.find("optimizer")) {
    Value* class_name = optimizer->find("class_name");
    if (class_name != nullptr && class_name->is_string()) {
      const Place place = class_name->place();
      *class_name = Value(optimizer_class(class_name->as_string()));
      class_name->with_place(place);
    }
  }
  return training_config;
}

Value without_tuples(const Value& value) {
  if (value.is_list()) {
    Value list = Value::list();
    for (const Value& item : value.as_list()) list.push_back(without_tuples(item));
    return list.with_place(value.place());
  }
  if (!value.is_map()) return value;
  const Value* class_name = value.find("class_name");
  const Value* items = value.find("items");
  if (class_name != nullptr && items != nullptr && *class_name == Value("__tuple__") && items->is_list()) return without_tuples(*items);
  Value map = Value::map();
  for (const auto& [key, member] : value.as_map()) {
    Value copy = without_tuples(member);
    copy.with_key_place(member.key_place());
    map.as_map().emplace_back(key, std::move(copy));
  }
  return map.with_place(value.place());
}

std::vector<Value> custom_classes_of(const Value& architecture) {
  std::vector<Value> found;
  add_custom_classes(architecture, "", found);
  return found;
}

}  // namespace lockstep
