#include "io/tensorflow/checkpoint_reader.h"

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/error/error.h"
#include "io/tensorflow/graph_model.h"
#include "io/tensorflow/object_graph.h"

namespace lockstep::tensorflow {
namespace {

struct SlotEnding {
  std::string_view ending;
  std::string_view class_name;
  std::string_view slot;
};

// How tf.compat.v1.train's optimizers name a slot: the variable's name and this.
constexpr std::array<SlotEnding, 8> slot_endings = {{{"Adam", "Adam", "momentums"},
                                                     {"Adam_1", "Adam", "velocities"},
                                                     {"Momentum", "SGD", "momentums"},
                                                     {"RMSProp", "RMSprop", "velocities"},
                                                     {"RMSProp_1", "RMSprop", "momentums"},
                                                     {"Adagrad", "Adagrad", "accumulators"},
                                                     {"Ftrl", "Ftrl", "accumulators"},
                                                     {"Ftrl_1", "Ftrl", "linears"}}};

bool is_power(const std::string& key) { return key == "beta1_power" || key == "beta2_power"; }

}  // namespace

void add_named_variables(StoredModel& model, std::shared_ptr<const Bundle> bundle) {
  const auto& tensors = bundle->tensors();
  StoredOptimizer optimizer;
  optimizer.legacy = true;
  std::map<std::string, size_t> tensor_of;
  std::vector<std::pair<std::string, std::string>> slot_keys;  // slot's key, weight's key
  for (const auto& [key, tensor] : tensors) {
    if (!tensor.dtype) {
      model.notes.push_back("strings, left out: " + printable(key));
      continue;
    }
    const size_t slash = key.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : key.substr(0, slash);
    const std::string last = slash == std::string::npos ? key : key.substr(slash + 1);
    if (key == "global_step" && tensor.dtype == DType::i64 && tensor.shape.empty()) {
      int64_t steps = 0;
      bundle->read(key, std::as_writable_bytes(std::span(&steps, 1)));
      optimizer.iterations = steps;
      continue;
    }
    if (is_power(key) || is_power(last)) continue;
    bool is_slot = false;
    for (const SlotEnding& ending : slot_endings) {
      if (last != ending.ending || !tensors.contains(parent)) continue;
      is_slot = true;
      optimizer.class_name = std::string(ending.class_name);
      optimizer.slots.push_back({std::string(ending.slot), stored_tensor(key, tensor)});
      slot_keys.emplace_back(key, parent);
    }
    if (is_slot) continue;
    StoredTensor stored = stored_tensor(key, tensor);
    stored.layer = parent;
    stored.variable = last;
    tensor_of.emplace(key, model.tensors.size());
    model.tensors.push_back(std::move(stored));
  }
  std::map<std::string, int> counts;
  for (StoredTensor& tensor : model.tensors) tensor.index = counts[tensor.layer]++;
  for (size_t i = 0; i < slot_keys.size(); ++i) {
    const auto weight = tensor_of.find(slot_keys[i].second);
    if (weight == tensor_of.end()) continue;
    const StoredTensor& owner = model.tensors[weight->second];
    StoredTensor& slot = optimizer.slots[i].tensor;
    slot.layer = owner.layer;
    slot.variable = owner.variable;
    slot.index = owner.index;
  }
  if (!optimizer.slots.empty()) model.optimizer = std::move(optimizer);
  model.framework = "tensorflow";
  model.semantics = 2;
  read_from(model, std::move(bundle));
}

StoredModel read_checkpoint(const std::string& prefix) {
  StoredModel model;
  model.file = prefix;
  model.format = "tf-checkpoint";
  model.rule = NamingRule::names;
  auto bundle = std::make_shared<const Bundle>(prefix);
  if (bundle->tensors().contains(object_graph_key)) {
    const ObjectGraph graph = read_object_graph(*bundle);
    add_graph(model, std::move(bundle), graph, {}, "");
  } else {
    add_named_variables(model, std::move(bundle));
  }
  if (model.tensors.empty()) throw Error("S01", prefix, "holds no variables");
  return model;
}

}  // namespace lockstep::tensorflow
