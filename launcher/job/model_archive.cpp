#include "launcher/job/model_archive.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "launcher/environment.h"

namespace lockstep {

KerasArchive archive_of(const Blueprint& blueprint, const Value& config, const std::vector<Tensor>& values, const ArchiveOptimizer& optimizer) {
  KerasArchive archive;
  archive.config = config;
  std::map<std::string, size_t> object_of;
  for (const ObjectGroup& group : object_groups(*blueprint.model)) {
    object_of.emplace(group.path, archive.objects.size());
    archive.objects.push_back({group.path, group.name, {}});
  }
  for (size_t v = 0; v < blueprint.names.size(); ++v) {
    const WeightName& name = blueprint.names[v];
    const auto [found, added] = object_of.emplace(name.object_path, archive.objects.size());
    if (added) {
      const std::string& layer = name.weight->layer;
      archive.objects.push_back({name.object_path, layer.substr(layer.rfind('/') + 1), {}});
    }
    std::vector<Tensor>& variables = archive.objects[found->second].variables;
    const auto index = static_cast<size_t>(name.object_index);
    if (variables.size() <= index) variables.resize(index + 1);
    variables[index] = values[v];
  }
  if (optimizer.optimizer) {
    KerasObject object{"optimizer", optimizer.optimizer->name, {}};
    const int64_t iterations = optimizer.iterations;
    object.variables.push_back(Tensor::of<int64_t>(DType::i64, {}, {&iterations, 1}));
    const auto rate = static_cast<float>(optimizer.optimizer->learning_rate_at(iterations));
    object.variables.push_back(Tensor::of<float>(DType::f32, {}, {&rate, 1}));
    std::vector<size_t> trainable;
    for (size_t v = 0; v < blueprint.names.size(); ++v) {
      if (blueprint.names[v].weight->variable.trainable) trainable.push_back(v);
    }
    for (const SlotOfVariable& each : keras_slot_order(optimizer.optimizer->slots(), trainable.size())) object.variables.push_back(optimizer.slots[each.slot][trainable[each.variable]]);
    archive.objects.push_back(std::move(object));
  }
  return archive;
}

CheckpointContent checkpoint_content(const Blueprint& blueprint, const Value& config, const std::vector<Tensor>& values, const ArchiveOptimizer& optimizer, RunState state) {
  CheckpointContent content;
  content.step = state.step;
  const KerasArchive archive = archive_of(blueprint, config, values, optimizer);
  KerasFile file = write_keras(archive);
  for (size_t o = 0; o < archive.objects.size(); ++o) {
    const KerasObject& object = archive.objects[o];
    for (size_t i = 0; i < object.variables.size(); ++i) content.tensors.push_back(record_of(fmt::format("{}/vars/{}", object.path, i), object.variables[i], "model.keras", file.offsets[o][i]));
  }
  content.files.push_back({"model.keras", std::move(file.bytes)});
  Fields fields;
  state.fields(fields);
  content.state = write_fields(fields);
  content.facts = processor_facts();
  return content;
}

Value compile_config_of(const Optimizer& optimizer, const Value& losses) {
  return Value(Value::Map{{"optimizer", to_keras(optimizer)}, {"loss", losses}, {"loss_weights", Value()}, {"metrics", Value()}, {"weighted_metrics", Value()}, {"run_eagerly", false}, {"steps_per_execution", 1}, {"jit_compile", false}});
}

}  // namespace lockstep
