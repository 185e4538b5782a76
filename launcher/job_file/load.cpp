#include "launcher/job_file/load.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "io/yaml/yaml.h"
#include "launcher/job_file/keys.h"
#include "launcher/job_file/merge.h"

namespace lockstep {
namespace {

std::string absolute_path(const std::filesystem::path& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

std::filesystem::path folder_of(const std::string& file) { return std::filesystem::path(file).parent_path(); }

void put_path(Value& text, std::string path) {
  const Place place = text.place();
  const Place key_place = text.key_place();
  text = Value(std::move(path));
  text.with_place(place).with_key_place(key_place);
}

/// Every text of a tree is a path: those of a text, a list, a mapping to texts.
void resolve_all(Value* tree) {
  if (!tree) return;
  if (tree->is_string() && !tree->as_string().empty()) {
    put_path(*tree, resolve_path(*tree));
  } else if (tree->is_list()) {
    for (Value& item : tree->as_list()) resolve_all(&item);
  } else if (tree->is_map()) {
    for (auto& member : tree->as_map()) resolve_all(&member.second);
  }
}

/// A library that is not where the job names it may be in LOCKSTEP_PLUGIN_PATH: its bare name stays.
void resolve_plugins(Value* plugins) {
  if (!plugins || !plugins->is_list()) return;
  for (Value& plugin : plugins->as_list()) {
    if (!plugin.is_string()) continue;
    std::string path = resolve_path(plugin);
    if (plugin.as_string().find('/') != std::string::npos || std::filesystem::exists(path)) put_path(plugin, std::move(path));
  }
}

/// Without `path`, columns are files of their own (idx, npy); with it they are arrays in that file, or files in that folder.
void resolve_data_set(Value& data_set) {
  const Value* path = data_set.find("path");
  const Value* format = data_set.find("format");
  const bool made_up = format && *format == Value("synthetic");
  if ((!path || path->is_null()) && !made_up) {
    for (const char* key : {"inputs", "targets", "sample_weight"}) resolve_all(data_set.find(key));
  }
  resolve_all(data_set.find("path"));
}

Value* find_in(Value* section, std::string_view key) { return section ? section->find(key) : nullptr; }

void resolve_paths(Value& tree) {
  resolve_all(tree.find("run_folder"));
  resolve_all(find_in(tree.find("model"), "from"));
  resolve_all(find_in(tree.find("restore"), "from"));
  resolve_plugins(tree.find("plugins"));
  Value* resume = find_in(tree.find("checkpoint"), "resume");
  if (resume && *resume != Value("auto") && *resume != Value("never")) resolve_all(resume);
  if (Value* data = tree.find("data"); data && data->is_map()) {
    for (auto& member : data->as_map()) resolve_data_set(member.second);
  }
}

void check_name(const Job& job, const Value& tree) {
  if (job.name.find('/') == std::string::npos && job.name != "." && job.name != "..") return;
  fail_at(tree.at("name").place(), "Y13", fmt::format("name: must be a name that a folder can have, found \"{}\"", printable(job.name)));
}

void check_resume(const Job& job, const Value& tree) {
  if (!job.restore.from || job.checkpoint.resume == "auto" || job.checkpoint.resume == "never") return;
  const Place& resume = tree.at("checkpoint").at("resume").place();
  const Place& from = tree.at("restore").at("from").place();
  const auto told = [](const Place& place) { return is_from_command_line(place) ? std::string("command line") : fmt::format("line {}", place.line); };
  fail_at(resume, "Y42", fmt::format("choose one: checkpoint.resume ({}) or restore.from ({})", told(resume), told(from)));
}

/// A key of an override that the job refuses is a bad override.
[[noreturn]] void raise(const Problems& problems) {
  Problems told;
  for (Problem problem : problems.list()) {
    const bool override = problem.place.starts_with("command line: ");
    if (override && problem.code != "Y40" && problem.code != "Y42") problem.code = "Y41";
    told.add(std::move(problem));
  }
  told.raise();
  std::abort();  // raise() throws: there are problems
}

/// Gives what was written its place again, in the tree of all keys.
void graft_places(Value& all, const Value& written) {
  all.with_place(written.place()).with_key_place(written.key_place());
  if (all.is_map() && written.is_map()) {
    for (const auto& [key, member] : written.as_map()) {
      if (Value* found = all.find(key)) graft_places(*found, member);
    }
  } else if (all.is_list() && written.is_list()) {
    for (size_t i = 0; i < std::min(all.size(), written.size()); ++i) graft_places(all.as_list()[i], written.as_list()[i]);
  }
}

void escape_variables(Value& value) {
  if (value.is_list()) {
    for (Value& item : value.as_list()) escape_variables(item);
  } else if (value.is_map()) {
    for (auto& member : value.as_map()) escape_variables(member.second);
  } else if (value.is_string()) {
    put_path(value, without_variables(value.as_string()));
  }
}

bool is_given(const Value& tree, std::initializer_list<std::string_view> path) {
  const Value* at = &tree;
  for (const std::string_view key : path) {
    if (at) at = at->find(key);
  }
  return at && !at->is_null();
}

}  // namespace

std::string resolve_path(const Value& text) {
  const Place& place = text.place();
  const std::filesystem::path folder = place.source && !is_from_command_line(place) ? folder_of(place.source->name) : std::filesystem::path();
  return absolute_path(folder / text.as_string());
}

LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides) {
  LoadedJob loaded;
  Problems problems;
  const Value schema = job_schema();
  Value tree = read_with_includes(path, loaded.files, problems);
  apply_overrides(tree, schema, overrides, problems);
  check_sections(tree, schema, problems);
  resolve_paths(tree);
  Job& job = loaded.job;
  problems.collect([&] { job = read_described<Job>(tree, ""); });
  problems.collect([&] { check_name(job, tree); });
  problems.collect([&] { check_resume(job, tree); });
  if (!problems.empty()) raise(problems);

  loaded.folder = absolute_path(folder_of(absolute_path(path)));
  if (job.name.empty()) job.name = std::filesystem::path(path).stem().string();
  if (job.run_folder.empty()) job.run_folder = absolute_path(std::filesystem::path(loaded.folder) / "runs" / job.name);
  loaded.resolved = FieldType<Job>::write(job);
  graft_places(loaded.resolved, tree);
  return loaded;
}

void require_keys(const LoadedJob& loaded, std::string_view command) {
  const Job& job = loaded.job;
  const Value& tree = loaded.resolved;
  Problems problems;
  const auto need = [&](bool there, std::string_view section, std::string_view message) {
    if (there) return;
    const Value* part = section.empty() ? nullptr : tree.find(section);
    problems.add(problem_at(part && part->place().source ? part->place() : tree.place(), "Y11", fmt::format("{} ('{}' needs it)", message, command)));
  };
  need(is_given(tree, {"model"}) || job.restore.from.has_value(), "", "'model' is required: the layers, or restore.from with a file that holds a whole model");
  const bool trains = command == "train" || command == "check" || command == "gradcheck" || command == "plan";
  if (trains) {
    need(job.data.train.given(), "data", "'data.train' is required: what is trained on");
    need(job.train.global_batch.has_value(), "train", "'train.global_batch' is required: rows of one step, all replicas together");
    need(job.train.epochs || job.train.steps, "train", "'train.epochs' or 'train.steps' is required");
    if (job.train.epochs && job.train.steps) {
      const Place& epochs = tree.at("train").at("epochs").place();
      const Place& steps = tree.at("train").at("steps").place();
      const bool late = steps.line >= epochs.line;
      problems.add(problem_at(late ? steps : epochs, "Y42", "choose one: train.epochs or train.steps"));
    }
  }
  if (command == "evaluate") need(job.data.test.given() || job.data.validation.given(), "data", "'data.test' or 'data.validation' is required: what is evaluated");
  problems.raise();
}

std::string resolved_yaml(const LoadedJob& loaded) {
  Value tree = loaded.resolved;
  tree.erase("include");
  escape_variables(tree);
  YamlComments comments;
  comments.beside = [](const std::string&, const Value& value) {
    const Place& place = value.place();
    if (!place.source) return std::string("default");
    if (is_from_command_line(place)) return std::string("command line");
    return printable(place.line > 0 ? fmt::format("{}:{}", place.source->name, place.line) : place.source->name);
  };
  return "# The whole job as it runs: every key, and where its value comes from. It can be run again as it stands.\n" + write_yaml(tree, comments);
}

}  // namespace lockstep
