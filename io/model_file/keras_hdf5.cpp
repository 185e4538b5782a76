#include "io/model_file/keras_hdf5.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/json/json.h"
#include "io/model_file/keras_config.h"
#include "io/model_file/optimizer_names.h"

namespace lockstep {
namespace {

using hdf5::WeightsFile;

std::string without_zero(const std::string& name) { return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name; }

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

[[noreturn]] void fail(const WeightsFile& file, const std::string& path, const char* code, const std::string& message) {
  throw Error(code, fmt::format("{}: {}", file.name(), printable(path)), message);
}

std::string below(const std::string& group, const std::string& name) { return (group == "/" ? "" : group) + "/" + name; }

StoredTensor tensor_at(const WeightsFile& file, const std::string& path, const std::string& listed_in) {
  if (!file.has_dataset(path)) {
    fail(file, path, "H28", file.has_group(path) ? "is a group; weight_names says that it is a weight" : fmt::format("is missing, but weight_names of {} lists it", printable(listed_in)));
  }
  StoredTensor tensor;
  tensor.source = path;
  tensor.type = file.type_of(path);
  return tensor;
}

// "hidden/kernel:0", "demo/hidden/kernel:0", "retrieval/hidden/kernel" in the layer "hidden": "kernel".
std::string variable_of(const std::string& weight, const std::string& layer) {
  const std::string name = without_zero(weight);
  const std::string searched = "/" + name;
  const size_t at = searched.find("/" + layer + "/");
  return layer.empty() || at == std::string::npos ? name : searched.substr(at + layer.size() + 2);
}

class LegacyReader {
 public:
  explicit LegacyReader(const WeightsFile& file) : file_(file), weights_(file.has_group("/model_weights") ? "/model_weights" : "/") {}

  StoredModel read() {
    model_.file = file_.name();
    model_.rule = NamingRule::layer_order;
    model_.notes = file_.notes();
    read_version();
    read_configs();
    model_.format = model_.architecture || weights_ != "/" ? "keras-h5" : "legacy-weights-h5";
    read_layers();
    read_optimizer();
    return std::move(model_);
  }

 private:
  void read_version() {
    auto version = file_.text("/", "keras_version");
    if (!version) version = file_.text(weights_, "keras_version");
    if (version) return set_keras_version(model_, *version, "H34", file_.name());
    model_.semantics = 2;
    model_.framework = "tf_keras";
    model_.notes.push_back("the file doesn't say which Keras wrote it: read as Keras 2");
  }

  void read_configs() {
    if (const auto config = file_.text("/", "model_config")) {
      model_.architecture = read_json_text(file_.name() + ": attribute model_config", *config, "H27");
      model_.custom_objects = custom_classes_of(*model_.architecture);
    } else if (weights_ != "/") {
      model_.notes.push_back("attribute model_config is missing: weights only; give the model in the job");
    }
    if (const auto config = file_.text("/", "training_config")) {
      model_.compile_config = compile_config_of(read_json_text(file_.name() + ": attribute training_config", *config, "H27"));
    }
  }

  std::vector<std::string> names_of(const std::string& group, const char* attribute) const {
    auto names = file_.texts(group, attribute);
    if (!names) fail(file_, group, "H28", fmt::format("attribute {} is missing", attribute));
    return *names;
  }

  void read_layers() {
    std::vector<std::string> layers = names_of(weights_, "layer_names");
    const std::string top = below(weights_, "top_level_model_weights");
    const bool has_top = file_.has_group(top) && file_.texts(top, "weight_names").has_value();
    std::set<std::string> seen;
    for (const std::string& layer : layers) {
      if (!seen.insert(layer).second) fail(file_, weights_, "H28", fmt::format("layer_names lists '{}' twice: names must be unique", printable(layer)));
      if (!file_.has_group(below(weights_, layer))) fail(file_, weights_, "H28", fmt::format("layer_names lists '{}', but there is no group {}", printable(layer), printable(below(weights_, layer))));
      read_layer(layer, below(weights_, layer));
    }
    if (has_top && !seen.contains("top_level_model_weights")) read_layer("", top);
    for (const std::string& dataset : file_.datasets()) {
      const bool is_weight = weights_ == "/" || dataset.starts_with(weights_ + "/");
      if (is_weight && !listed_.contains(dataset)) {
        fail(file_, dataset, "H28", layers.empty() ? "is there, but layer_names is empty" : "is in no layer's weight_names, or its layer isn't in layer_names");
      }
    }
  }

  void read_layer(const std::string& layer, const std::string& group) {
    int index = 0;
    for (const std::string& weight : names_of(group, "weight_names")) {
      const std::string path = below(group, weight);
      if (!listed_.insert(path).second) fail(file_, group, "H28", fmt::format("weight_names lists '{}' twice: duplicate", printable(weight)));
      StoredTensor tensor = tensor_at(file_, path, group);
      tensor.layer = layer;
      tensor.variable = variable_of(weight, layer);
      tensor.index = index++;
      full_names_.push_back(without_zero(weight));
      model_.tensors.push_back(std::move(tensor));
    }
  }

  void read_optimizer() {
    const std::string group = "/optimizer_weights";
    if (!file_.has_group(group)) return;
    StoredOptimizer optimizer;
    std::vector<std::string> names = names_of(group, "weight_names");
    const Value* config = model_.compile_config ? model_.compile_config->find("optimizer") : nullptr;
    const Value* class_name = config != nullptr ? config->find("class_name") : nullptr;
    if (class_name != nullptr && class_name->is_string()) optimizer.class_name = class_name->as_string();
    if (optimizer.class_name.empty()) {
      for (const std::string& name : names) {
        if (optimizer.class_name.empty() && name.find('/') != std::string::npos) optimizer.class_name = optimizer_class(name.substr(0, name.find('/')));
      }
    }
    std::vector<SlotName> slots;
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (!seen.insert(name).second) fail(file_, group, "H28", fmt::format("weight_names lists '{}' twice: duplicate", printable(name)));
      StoredTensor tensor = tensor_at(file_, below(group, name), group);
      const std::string last = last_part(without_zero(name));
      if (last == "iteration" || last == "iterations" || last == "iter") {
        optimizer.legacy = last != "iteration";
        optimizer.iterations = integer_at(tensor);
      } else if (last == "learning_rate" && tensor.type == TensorType{DType::f32, {}}) {
        float value = 0;
        file_.read(tensor.source, std::as_writable_bytes(std::span(&value, 1)));
        optimizer.learning_rate = value;
      } else {
        slots.push_back(read_slot_name(name, optimizer.class_name));
        optimizer.slots.push_back({slots.back().slot, std::move(tensor)});
      }
    }
    name_weights(optimizer, slots, model_.tensors, full_names_);
    model_.optimizer = std::move(optimizer);
  }

  int64_t integer_at(const StoredTensor& tensor) const {
    if (tensor.type != TensorType{DType::i64, {}}) fail(file_, tensor.source, "H33", fmt::format("the optimizer's count of steps is {}; an int64 scalar was expected", tensor.type.text()));
    int64_t value = 0;
    file_.read(tensor.source, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  const WeightsFile& file_;
  std::string weights_;
  StoredModel model_;
  std::set<std::string> listed_;
  std::vector<std::string> full_names_;
};

bool is_state_of_training(const std::string& path) {
  for (const std::string_view part : {"seed_generator", "metrics", "_loss_tracker", "compile_metrics", "_compile_metrics", "loss_tracker"}) {
    if (("/" + path + "/").find("/" + std::string(part) + "/") != std::string::npos) return true;
  }
  return false;
}

// The names of the objects on the way to `path`, as far as the file keeps them: "mid/dense".
std::string names_to(const WeightsFile& file, const std::string& path) {
  std::string names;
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string vars = path.substr(0, slash) + "/vars";
    const auto name = file.has_group(vars) ? file.text(vars, "name") : std::nullopt;
    if (name) names += (names.empty() ? "" : "/") + *name;
    if (slash == std::string::npos) return names;
  }
}

bool has_names(const WeightsFile& file) {
  for (const std::string& group : file.groups()) {
    if (group.ends_with("/vars") && file.text(group, "name")) return true;
  }
  return false;
}

// Members of a group `vars` in the order of their numbers; a gap or another name is an error.
std::vector<StoredTensor> variables_in(const WeightsFile& file, const std::string& vars) {
  size_t count = 0;
  for (auto member = file.datasets().lower_bound(vars + "/"); member != file.datasets().end() && member->starts_with(vars + "/"); ++member) ++count;
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const std::string path = fmt::format("{}/{}", vars, i);
    if (!file.has_dataset(path)) fail(file, vars, "H28", fmt::format("has {} variables, but none is called '{}'", count, i));
    StoredTensor tensor;
    tensor.source = path;
    tensor.type = file.type_of(path);
    tensor.index = static_cast<int>(i);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

StoredOptimizer optimizer_in(const WeightsFile& file, const std::string& vars, int version) {
  StoredOptimizer optimizer;
  if (const auto name = file.text(vars, "name")) optimizer.class_name = optimizer_class(*name);
  std::vector<StoredTensor> tensors = variables_in(file, vars);
  for (StoredTensor& tensor : tensors) {
    if (tensor.index == 0) {
      if (tensor.type != TensorType{DType::i64, {}}) fail(file, tensor.source, "H33", fmt::format("the optimizer's count of steps is {}; an int64 scalar was expected", tensor.type.text()));
      int64_t steps = 0;
      file.read(tensor.source, std::as_writable_bytes(std::span(&steps, 1)));
      optimizer.iterations = steps;
    } else if (tensor.index == 1 && version == 3 && tensor.type == TensorType{DType::f32, {}}) {
      // Absent where a schedule gives the rate.
      float rate = 0;
      file.read(tensor.source, std::as_writable_bytes(std::span(&rate, 1)));
      optimizer.learning_rate = rate;
    } else {
      tensor.object_path = "optimizer";
      optimizer.slots.push_back({"", std::move(tensor)});
    }
  }
  return optimizer;
}

void read_values(StoredModel& model, std::shared_ptr<const WeightsFile> file) {
  model.read = [file = std::move(file)](const StoredTensor& tensor, std::span<std::byte> into) { file->read(tensor.source, into); };
}

}  // namespace

bool is_legacy_layout(const WeightsFile& file) { return file.has_group("/model_weights") || file.texts("/", "layer_names").has_value() || file.text("/", "model_config").has_value(); }

StoredModel read_legacy_hdf5(std::shared_ptr<const WeightsFile> file) {
  StoredModel model = LegacyReader(*file).read();
  read_values(model, std::move(file));
  return model;
}

StoredModel read_object_hdf5(std::shared_ptr<const WeightsFile> file, int version) {
  StoredModel model;
  model.file = file->name();
  model.format = "weights-h5";
  model.rule = NamingRule::object_path;
  model.notes = file->notes();
  model.semantics = version != 0 ? version : has_names(*file) ? 3
                                                              : 2;
  model.framework = model.semantics == 3 ? "keras" : "tf_keras";
  size_t left_out = 0;
  std::set<std::string> seen;
  for (const std::string& group : file->groups()) {
    if (!group.ends_with("/vars")) continue;
    const std::string owner = group.substr(0, group.size() - 5);
    const std::string path = owner.empty() ? "" : owner.substr(1);
    const bool is_optimizer = path == "optimizer" || path.starts_with("optimizer/");
    std::vector<StoredTensor> tensors = variables_in(*file, group);
    for (const StoredTensor& tensor : tensors) seen.insert(tensor.source);
    if (is_optimizer) {
      // A LossScaleOptimizer's own counters stand in optimizer/vars, behind optimizer/inner_optimizer/vars.
      if (!tensors.empty() && !model.optimizer) model.optimizer = optimizer_in(*file, group, model.semantics);
      continue;
    }
    if (is_state_of_training(path)) {
      left_out += tensors.size();
      continue;
    }
    const std::string layer = owner.empty() ? "" : names_to(*file, owner);
    for (StoredTensor& tensor : tensors) {
      tensor.object_path = path;
      tensor.layer = layer;
      model.tensors.push_back(std::move(tensor));
    }
  }
  for (const std::string& dataset : file->datasets()) {
    if (!seen.contains(dataset)) fail(*file, dataset, "H28", "is in no group 'vars', where Keras keeps variables");
  }
  if (left_out > 0) model.notes.push_back(fmt::format("{} variables of metrics and random seeds were left out", left_out));
  if (seen.empty()) fail(*file, "/", "H28", "holds no weights of Keras: neither layer_names nor a group 'vars' with variables");
  read_values(model, std::move(file));
  return model;
}

}  // namespace lockstep
