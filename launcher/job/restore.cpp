#include "launcher/job/restore.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/class_config.h"
#include "core/value/fields.h"

namespace lockstep {

namespace {

bool is_tensorflow(const StoredModel& stored) { return stored.format == "saved-model" || stored.format == "tf-checkpoint"; }

Tensor read_tensor(const StoredModel& stored, const StoredTensor& tensor) {
  Tensor value(tensor.type);
  stored.read(tensor, value.bytes());
  return value;
}

struct NotFinite {
  int64_t nan = 0;
  int64_t infinite = 0;
};

NotFinite count_not_finite(const Tensor& tensor) {
  NotFinite count;
  visit_floating(tensor.dtype(), [&]<class T>(Tag<T>) {
    for (const T& element : tensor.as<T>()) {
      const auto value = static_cast<double>(element);
      count.nan += std::isnan(value);
      count.infinite += std::isinf(value);
    }
  });
  return count;
}

/// The weight whose own tensor has the same names as this slot's.
std::optional<size_t> weight_of_slot(const StoredModel& stored, const StoredTensor& slot, const std::vector<std::optional<size_t>>& weight_of_tensor) {
  if (slot.layer.empty() && slot.object_path.empty()) return std::nullopt;
  for (size_t t = 0; t < stored.tensors.size(); ++t) {
    const StoredTensor& tensor = stored.tensors[t];
    if (tensor.layer == slot.layer && tensor.variable == slot.variable && tensor.object_path == slot.object_path && tensor.index == slot.index) return weight_of_tensor[t];
  }
  return std::nullopt;
}

std::string text_of_optimizer(const StoredModel& stored) { return stored.optimizer->class_name.empty() ? "an optimizer of unknown class" : stored.optimizer->class_name; }

/// Whether the optimizer's state in the file is to be used; throws where the job and the file disagree.
bool wants_optimizer(const StoredModel& stored, const RestoreRules& rules, const Optimizer& optimizer, std::string& note) {
  const bool has = stored.optimizer && stored.optimizer->iterations;
  if (rules.optimizer == OptimizerRestore::reset) {
    note = has ? fmt::format("optimizer: {} in the file is left (restore.optimizer: reset)", text_of_optimizer(stored)) : "";
    return false;
  }
  if (!has) {
    if (rules.optimizer == OptimizerRestore::keep) throw Error(is_tensorflow(stored) ? "S33" : "H33", stored.file, "the file has no optimizer state, and restore.optimizer is 'keep'; write 'auto' or 'reset' to start with a fresh one");
    note = "optimizer: fresh (the file has none)";
    return false;
  }
  if (!stored.optimizer->class_name.empty() && !same_identifier(stored.optimizer->class_name, optimizer.type())) {
    throw Error(is_tensorflow(stored) ? "S33" : "H33", stored.file, fmt::format("optimizer: the file has {}, the job has {} (restore.optimizer: reset to start fresh)", text_of_optimizer(stored), optimizer.type()));
  }
  return true;
}

RestoredOptimizer read_slots(const StoredModel& stored, const std::vector<WeightKeys>& keys, const std::vector<size_t>& trainable_order, const std::vector<std::string>& slot_names, const std::vector<std::optional<size_t>>& weight_of_tensor) {
  RestoredOptimizer result;
  const std::string code = is_tensorflow(stored) ? "S33" : "H33";
  result.iterations = stored.optimizer->iterations.value_or(0);
  result.slots.assign(slot_names.size(), std::vector<Tensor>(keys.size()));
  const std::vector<StoredOptimizer::Slot>& slots = stored.optimizer->slots;
  const bool named = std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return !slot.name.empty(); });
  const std::vector<SlotOfVariable> order = keras_slot_order(slot_names, trainable_order.size());
  Problems problems;
  for (size_t i = 0; i < slots.size(); ++i) {
    const StoredOptimizer::Slot& slot = slots[i];
    size_t which = 0;
    std::optional<size_t> weight;
    if (named) {
      const auto found = std::find(slot_names.begin(), slot_names.end(), slot.name);
      if (found == slot_names.end()) continue;  // of an option that this optimizer does not use
      which = static_cast<size_t>(found - slot_names.begin());
      weight = weight_of_slot(stored, slot.tensor, weight_of_tensor);
    }
    if (!weight && slots.size() == order.size()) {
      which = order[i].slot;
      weight = trainable_order[order[i].variable];
    }
    if (!weight) {
      problems.add({code, fmt::format("{}: {}", stored.file, slot.tensor.source), "this slot belongs to no weight of the model (restore.optimizer: reset to start fresh)", {}});
      continue;
    }
    if (slot.tensor.type.shape != keys[*weight].type.shape) {
      problems.add({code, fmt::format("{}: {}", stored.file, slot.tensor.source), fmt::format("a slot of shape {} for '{}', which is {}", text_of(slot.tensor.type.shape), keys[*weight].path, text_of(keys[*weight].type.shape)), {}});
      continue;
    }
    result.slots[which][*weight] = cast(read_tensor(stored, slot.tensor), keys[*weight].type.dtype);
  }
  for (const size_t v : trainable_order) {
    for (size_t s = 0; s < slot_names.size(); ++s) {
      if (!result.slots[s][v].valid()) problems.add({code, stored.file, fmt::format("optimizer: slot '{}' of '{}' is missing (restore.optimizer: reset to start fresh)", slot_names[s], keys[v].path), {}});
    }
  }
  problems.raise();
  return result;
}

std::vector<std::optional<size_t>> weights_of_tensors(const Match& match, size_t tensors) {
  std::vector<std::optional<size_t>> result(tensors);
  for (const Match::Pair& pair : match.pairs) result[pair.tensor] = pair.weight;
  return result;
}

std::string rule_text(NamingRule rule) {
  switch (rule) {
    case NamingRule::layer_order: return "layer names, then Keras's order in a layer";
    case NamingRule::object_path: return "layer names of vars groups, then object paths";
    case NamingRule::names: return "variable names";
  }
  return {};
}

}  // namespace

Restored restore_from_file(const StoredModel& stored, const std::vector<WeightKeys>& keys, const RestoreRules& rules, MirroredState& state, const Optimizer* optimizer) {
  Restored restored;
  const Match match = match_tensors(stored, keys, rules.match);
  Value tensors = Value::list();
  Problems problems;
  std::vector<Tensor> values(keys.size());
  for (const Match::Pair& pair : match.pairs) {
    const StoredTensor& tensor = stored.tensors[pair.tensor];
    const WeightKeys& key = keys[pair.weight];
    problems.collect([&] {
      Tensor value = read_tensor(stored, tensor);
      const NotFinite bad = count_not_finite(value);
      if (bad.nan + bad.infinite > 0) {
        const std::string what = fmt::format("'{}' holds {} NaN and {} infinite of {} values", key.path, bad.nan, bad.infinite, value.elements());
        if (!rules.allow_not_finite) throw Error(is_tensorflow(stored) ? "S24" : "H24", fmt::format("{}: {}", stored.file, tensor.source), what + "; restore.allow_not_finite: true trains from them all the same");
        restored.warnings.push_back(fmt::format("{}: {}: {}", stored.file, printable(tensor.source), what));
      }
      std::string transform = "none";
      if (value.dtype() != key.type.dtype) {
        transform = fmt::format("{} to {}", name_of(value.dtype()), name_of(key.type.dtype));
        restored.notes.push_back(fmt::format("{}: converted from {}", key.path, transform));
        value = cast(value, key.type.dtype);
      }
      if (pair.by_position) restored.notes.push_back(fmt::format("{}: matched by position ({})", key.path, printable(tensor.source)));
      tensors.push_back(Value(Value::Map{{"source", tensor.source}, {"variable", key.path}, {"shape", FieldType<std::vector<int64_t>>::write(key.type.shape)}, {"dtype", name_of(key.type.dtype)}, {"transform", transform}, {"matched_by", pair.by_position ? "position" : "name"}, {"hash", hash_of(value.bytes())}}));
      values[pair.weight] = std::move(value);
    });
  }
  problems.raise();

  std::string optimizer_note;
  if (optimizer && wants_optimizer(stored, rules, *optimizer, optimizer_note)) {
    std::vector<size_t> trainable;
    for (size_t w = 0; w < keys.size(); ++w) {
      if (state.variables()[w].trainable) trainable.push_back(w);
    }
    restored.optimizer = read_slots(stored, keys, trainable, optimizer->slots(), weights_of_tensors(match, stored.tensors.size()));
    optimizer_note = fmt::format("optimizer: {} restored, {} iterations", optimizer->type(), restored.optimizer->iterations);
  }
  if (!optimizer_note.empty()) restored.notes.push_back(optimizer_note);

  // Nothing has failed: only now does the state change.
  for (size_t w = 0; w < values.size(); ++w) {
    if (values[w].valid()) state.set(w, values[w]);
  }
  for (const std::string& note : stored.notes) restored.notes.push_back(note);
  Value missing = Value::list(), unused = Value::list(), notes = Value::list();
  for (const size_t w : match.missing) missing.push_back(keys[w].path);
  for (const size_t t : match.unused) unused.push_back(stored.tensors[t].source);
  for (const std::string& note : restored.notes) notes.push_back(note);
  restored.receipt = Value(Value::Map{{"file", stored.file}, {"format", stored.format}, {"framework", stored.framework}, {"version", stored.version}, {"semantics", fmt::format("keras-{}", stored.semantics)}, {"rule", rule_text(stored.rule)}, {"tensors", std::move(tensors)}, {"missing", std::move(missing)}, {"unused", std::move(unused)}, {"optimizer", restored.optimizer ? Value(optimizer->type()) : Value()}, {"notes", std::move(notes)}});
  return restored;
}

}  // namespace lockstep
