#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "core/value/fields.h"
#include "io/checkpoint/checkpoint.h"
#include "io/json/json.h"
#include "io/model_file/stored_model.h"
#include "launcher/commands/command.h"
#include "launcher/log.h"

namespace lockstep {

namespace {

std::string shown_name(const StoredTensor& tensor) {
  const std::string& owner = tensor.layer.empty() ? tensor.object_path : tensor.layer;
  return tensor.variable.empty() ? fmt::format("{}[{}]", owner, tensor.index) : fmt::format("{}/{}", owner, tensor.variable);
}

Value tensor_value(const StoredTensor& tensor) {
  return Value(Value::Map{{"source", tensor.source}, {"layer", tensor.layer}, {"variable", tensor.variable}, {"object_path", tensor.object_path}, {"index", tensor.index}, {"dtype", name_of(tensor.type.dtype)}, {"shape", FieldType<Shape>::write(tensor.type.shape)}, {"bytes", static_cast<int64_t>(tensor.type.bytes())}});
}

void print_model(const Log& log, const StoredModel& stored, bool json) {
  int64_t bytes = 0;
  for (const StoredTensor& tensor : stored.tensors) bytes += static_cast<int64_t>(tensor.type.bytes());
  if (json) {
    Value tensors = Value::list(), slots = Value::list();
    for (const StoredTensor& tensor : stored.tensors) tensors.push_back(tensor_value(tensor));
    Value result(Value::Map{{"file", stored.file}, {"format", stored.format}, {"framework", stored.framework}, {"version", stored.version}, {"semantics", stored.semantics}, {"bytes", bytes}, {"tensors", std::move(tensors)}});
    if (stored.optimizer) {
      for (const StoredOptimizer::Slot& slot : stored.optimizer->slots) {
        Value each = tensor_value(slot.tensor);
        each.set("slot", slot.name);
        slots.push_back(std::move(each));
      }
      result.set("optimizer", Value(Value::Map{{"class_name", stored.optimizer->class_name}, {"iterations", stored.optimizer->iterations ? Value(*stored.optimizer->iterations) : Value()}, {"slots", std::move(slots)}}));
    }
    if (stored.architecture) result.set("architecture", *stored.architecture);
    log.result(write_json(result, 2));
    return;
  }
  log.result(fmt::format("{}: {}, {} {}, semantics of Keras {}{}", stored.file, stored.format, stored.framework, stored.version, stored.semantics, stored.architecture ? "" : ", weights only"));
  for (const StoredTensor& tensor : stored.tensors) log.result(fmt::format("  {:<44} {:<24} {}", printable(shown_name(tensor)), tensor.type.text(), printable(tensor.source)));
  log.result(fmt::format("  {} tensors, {} bytes", stored.tensors.size(), bytes));
  if (stored.optimizer) {
    log.result(fmt::format("optimizer: {}, {} iterations, {} slots", stored.optimizer->class_name.empty() ? "class unknown" : stored.optimizer->class_name, stored.optimizer->iterations.value_or(0), stored.optimizer->slots.size()));
    for (const StoredOptimizer::Slot& slot : stored.optimizer->slots) log.result(fmt::format("  {:<16} {:<27} {:<24} {}", slot.name, printable(shown_name(slot.tensor)), slot.tensor.type.text(), printable(slot.tensor.source)));
  }
  for (const Value& object : stored.custom_objects) {
    const std::string& path = object.at("path").as_string();
    log.result(fmt::format("class of the user's own: {} ({})", printable(object.at("class_name").as_string()), path.empty() ? "the model itself" : printable(path)));
  }
  for (const std::string& note : stored.notes) log.result("note: " + note);
}

void inspect(const Log& log, const std::string& file, bool json) {
  if (std::filesystem::is_directory(file)) {
    if (const std::optional<Search> search = find_checkpoint(file)) {
      for (const Problem& problem : search->skipped) log.warn(problem.message);
      if (!search->newest) throw Error("C01", file, "no checkpoint has been committed there");
      const FoundCheckpoint& checkpoint = *search->newest;
      if (!json) log.result(fmt::format("{}: checkpoint of step {}, {} files, every byte as its manifest says", checkpoint.folder, checkpoint.step, checkpoint.manifest.files.size()));
      print_model(log, open_model_file((std::filesystem::path(checkpoint.folder) / "model.keras").string()), json);
      return;
    }
  }
  print_model(log, open_model_file(file), json);
}

}  // namespace

/// lockstep inspect FILE [--json]
Command inspect_command() {
  return {"inspect", "What a model file or checkpoint holds: tensors, shapes, optimizer, sizes", [](CLI::App& app, const GlobalOptions&) -> std::function<ExitCode()> {
            auto file = std::make_shared<std::string>();
            auto json = std::make_shared<bool>(false);
            app.add_option("file", *file, "A model file, a SavedModel, a checkpoint prefix, a run or checkpoint folder")->required();
            app.add_flag("--json", *json, "As JSON, with the architecture");
            return [file, json] {
              inspect(Log(true), *file, *json);
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
