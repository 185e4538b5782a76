#include "launcher/job_file/job.h"

#include <fmt/format.h>

#include "io/yaml/yaml.h"

namespace lockstep {

void Job::fields(Fields& fields) {
  fields.add("include", include, "Files merged before this one, in order: mappings deeply, lists replaced; this file's own keys win.");
  fields.add("name", name, "What the run is called; empty: the job file's name without its ending.");
  fields.add("seed", seed, "What initial weights, sample orders, dropout and augmentation are made from.").at_least(0);
  fields.add("run_folder", run_folder, "Where checkpoints, metrics and receipts go; empty: runs/NAME beside the job file.");
  fields.add("launch", launch, "What the job asserts of its start; anything else is refused before data is read.");
  fields.add("device", device, "Where programs run; auto: on CUDA where there is a device.").one_of({"auto", "cpu", "cuda"});
  fields.add("reduction", reduction, "exact: the same bits on any number of ranks; fast: the library's own sums, whose bits may vary with it.").one_of({"exact", "fast"});
  fields.add("custom_layers", custom_layers, "Layer types made of known ones: {NAME: {parameters, inputs, weights, layers, outputs}}.");
  fields.add("plugins", plugins, "Shared libraries with layers in C++.");
  fields.add("model", model, "The layers, their inputs and outputs and dtype_policy; or {from: FILE}: a file's architecture with fresh weights. null: the one in restore.from.");
  fields.add("restore", restore, "What a first start begins from.");
  fields.add("data", data, "The data sets.");
  fields.add("train", train, "How the model is trained.");
  fields.add("warm_up", warm_up, "The probe that every replica runs before the first step.");
  fields.add("checkpoint", checkpoint, "When checkpoints are written, and how a run goes on from one.");
  fields.add("watchdog", watchdog, "How long ranks wait for each other.");
  fields.add("audit", audit, "How often the ranks prove that they hold the same weights.");
  fields.add("faults", faults, "Faults to simulate, to see that they are found: [{kind: kill, rank: 2, step: 20}].");
}

Value job_schema() {
  Value schema(Value::Map{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "lockstep job"}});
  const Value described = FieldType<Job>::schema();
  for (const auto& [key, member] : described.as_map()) schema.set(key, member);
  return schema;
}

namespace {

const Value* properties_of(const Value& schema) {
  const Value* either = schema.find("anyOf");
  return (either ? either->as_list().front() : schema).find("properties");
}

/// "One of: a, b." and bounds, or empty.
std::string limits_of(const Value& schema) {
  if (const Value* items = schema.find("items")) return limits_of(*items);
  if (const Value* either = schema.find("anyOf")) return limits_of(either->as_list().front());
  if (const Value* names = schema.find("enum")) {
    std::string list;
    for (const Value& name : names->as_list()) list += (list.empty() ? "" : ", ") + name.as_string();
    return " One of: " + list + ".";
  }
  if (const Value* above = schema.find("exclusiveMinimum")) return fmt::format(" More than {}.", above->as_number());
  if (const Value* least = schema.find("minimum")) return fmt::format(" At least {}.", least->as_number());
  return {};
}

/// Each member's path with what reference.yaml says above it.
void collect_sentences(const Value& schema, const std::string& path, std::map<std::string, std::string>& sentences) {
  const Value* properties = properties_of(schema);
  if (!properties) return;
  for (const auto& [key, member] : properties->as_map()) {
    const std::string member_path = join_path(path, key);
    sentences[member_path] = member.at("description").as_string() + limits_of(member);
    collect_sentences(member, member_path, sentences);
  }
}

}  // namespace

std::string reference_yaml() {
  std::map<std::string, std::string> sentences;
  collect_sentences(job_schema(), "", sentences);
  YamlComments comments;
  comments.above = [&](const std::string& path, const Value&) {
    const auto found = sentences.find(path);
    return found == sentences.end() ? std::string() : found->second;
  };
  return "# Every key of a job file with its default. Made from the program's own description of jobs; a test holds the two together.\n" + write_yaml(FieldType<Job>::write({}), comments);
}

const Value* member_schema(const Value& schema, std::string_view key) {
  const Value* properties = properties_of(schema);
  return properties ? properties->find(key) : nullptr;
}

std::vector<std::string> members_of(const Value& schema) {
  std::vector<std::string> names;
  if (const Value* properties = properties_of(schema)) {
    for (const auto& member : properties->as_map()) names.push_back(member.first);
  }
  return names;
}

}  // namespace lockstep
