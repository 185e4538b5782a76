#include "io/data/requests.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/data/synthetic.h"

namespace lockstep {

namespace {

/// One of the three sections that give columns.
struct Section {
  RowSource::Role role;
  std::string_view key;    ///< of the description
  std::string_view thing;  ///< what its names are names of
  std::vector<std::string> names;
};

bool is_bare(const Value& value, const std::vector<std::string>& names) {
  if (!value.is_map()) return !value.is_list();
  const bool named = std::ranges::any_of(names, [&](const std::string& name) { return value.find(name) != nullptr; });
  return !named && SyntheticColumn::describes(value);
}

std::string joined(const std::vector<std::string>& names) { return printable(fmt::format("{}", fmt::join(names, ", "))); }

void add_section(const Section& section, const Value& value, const std::string& path, Problems& problems, std::vector<ColumnRequest>& requests) {
  const std::string section_path = join_path(path, section.key);
  const std::vector<std::string>& names = section.names;
  std::vector<std::pair<size_t, ColumnRequest>> found;
  const auto add = [&](size_t index, const std::string& name, const std::string& column_path, const Value& description) {
    if (!description.is_null()) found.push_back({index, {section.role, index, name, column_path, description}});
  };
  if (value.is_null()) {
  } else if (is_bare(value, names)) {
    if (section.role == RowSource::Role::sample_weight) {
      add(0, "", section_path, value);
    } else if (names.size() == 1) {
      add(0, names[0], join_path(section_path, names[0]), value);
    } else {
      problems.add(problem_at(value.place(), "Y12", fmt::format("{}: the model has {} {}s ({}); give a mapping from their names", section_path, names.size(), section.thing, joined(names))));
    }
  } else if (value.is_list()) {
    if (value.size() > names.size()) problems.add(problem_at(value.place(), "Y13", fmt::format("{}: {} entries for {} {}s ({})", section_path, value.size(), names.size(), section.thing, joined(names))));
    for (size_t i = 0; i < std::min(value.size(), names.size()); ++i) add(i, names[i], join_path(section_path, names[i]), value.as_list()[i]);
  } else {
    for (const auto& [name, description] : value.as_map()) {
      const auto position = std::ranges::find(names, name);
      if (position != names.end()) {
        add(static_cast<size_t>(position - names.begin()), name, join_path(section_path, name), description);
        continue;
      }
      const std::string hint = did_you_mean(name, names);
      const Place& place = description.key_place().source ? description.key_place() : description.place();
      problems.add(problem_at(place, "Y09", fmt::format("'{}' in '{}' is no {} of the model{}; it has: {}", printable(name), section_path, section.thing, hint, joined(names))));
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<size_t, ColumnRequest>::first);
  for (auto& [index, request] : found) requests.push_back(std::move(request));
}

}  // namespace

std::vector<ColumnRequest> requests_of(const DataDescription& data, const Place& place, const std::string& path, const DataExpectation& model) {
  Section inputs{RowSource::Role::input, "inputs", "input", {}};
  Section targets{RowSource::Role::target, "targets", "output", {}};
  for (const auto& input : model.inputs) inputs.names.push_back(input.name);
  for (const auto& output : model.outputs) targets.names.push_back(output.name);
  const Section weights{RowSource::Role::sample_weight, "sample_weight", "output", targets.names};

  Problems problems;
  std::vector<ColumnRequest> requests;
  add_section(inputs, data.inputs, path, problems, requests);
  if (problems.empty()) {
    for (const std::string& name : inputs.names) {
      if (std::ranges::any_of(requests, [&](const ColumnRequest& request) { return request.name == name; })) continue;
      problems.add(problem_at(data.inputs.is_null() ? place : data.inputs.place(), "Y11", fmt::format("'{}' is required: where the values of the model's input '{}' are", join_path(join_path(path, "inputs"), name), name)));
    }
  }
  add_section(targets, data.targets, path, problems, requests);
  add_section(weights, data.sample_weight, path, problems, requests);
  problems.raise();
  return requests;
}

std::vector<std::string> files_named(const Value& value, const std::string& path, const std::string& folder) {
  std::vector<std::string> files;
  if (value.is_list()) {
    for (size_t i = 0; i < value.size(); ++i) {
      const std::vector<std::string> part = files_named(value.as_list()[i], join_path(path, i), folder);
      files.insert(files.end(), part.begin(), part.end());
    }
    return files;
  }
  const std::string text = FieldType<std::string>::read(value, path);
  const auto written_in = value.place().source ? std::filesystem::path(value.place().source->name).parent_path() : std::filesystem::path();
  const std::string file = ((folder.empty() ? written_in : std::filesystem::path(folder)) / text).string();
  if (text.find_first_of("*?[") == std::string::npos || std::filesystem::exists(file)) return {file};
  glob_t found{};
  if (glob(file.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (files.empty()) throw Error("D01", value.place().text(), fmt::format("{}: no file matches '{}'", path, printable(file)));
  return files;
}

}  // namespace lockstep
