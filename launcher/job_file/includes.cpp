#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "core/value/fields.h"
#include "io/yaml/yaml.h"
#include "launcher/job_file/load.h"
#include "launcher/job_file/merge.h"

namespace lockstep {
namespace {

constexpr size_t most_files = 100;

/// Members of `over` win; mappings are merged deeply, all else is replaced.
void merge(Value& base, Value over) {
  if (!base.is_map() || !over.is_map() || base.size() == 0) {
    base = std::move(over);
    return;
  }
  for (auto& [key, member] : over.as_map()) {
    if (Value* found = base.find(key)) {
      merge(*found, std::move(member));
    } else {
      base.as_map().emplace_back(key, std::move(member));
    }
  }
  base.with_place(over.place()).with_key_place(over.key_place());
}

class Includes {
 public:
  Includes(std::vector<std::string>& files, Problems& problems) : files_(files), problems_(problems) {}

  Value read(const std::string& path) {
    if (files_.size() >= most_files) throw Error("Y23", path, fmt::format("more than {} files are included", most_files));
    const std::string identity = std::filesystem::weakly_canonical(path).string();
    open_.push_back(identity);
    files_.push_back(path);
    Value own = read_yaml_file(path);
    expand_variables(own, problems_);
    Value merged = Value::map();
    if (const Value* list = own.find("include")) {
      const Value::List entries = list->is_string() ? Value::List{*list} : list->is_null() ? Value::List{}
                                                                                           : list_of(*list, "include");
      for (size_t i = 0; i < entries.size(); ++i) merge(merged, read_included(entries[i], join_path("include", i)));
    }
    own.erase("include");
    const Place place = own.place();
    merge(merged, std::move(own));
    open_.pop_back();
    return merged.with_place(place);
  }

 private:
  Value read_included(const Value& entry, const std::string& name) {
    FieldType<std::string>::read(entry, name);
    const std::string path = resolve_include(entry);
    const auto found = std::find(open_.begin(), open_.end(), std::filesystem::weakly_canonical(path).string());
    if (found != open_.end()) {
      std::string cycle;
      for (auto file = found; file != open_.end(); ++file) cycle += std::filesystem::path(*file).filename().string() + " -> ";
      fail_at(entry.place(), "Y24", fmt::format("include cycle: {}{}", cycle, std::filesystem::path(*found).filename().string()));
    }
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) fail_at(entry.place(), "Y01", fmt::format("cannot read '{}', which is included here: No such file or directory", path));
    if (std::filesystem::is_directory(path, failure)) fail_at(entry.place(), "Y01", fmt::format("cannot read '{}', which is included here: is a directory", path));
    return read(path);
  }

  /// As short as the job file's own path was given, for messages.
  static std::string resolve_include(const Value& entry) {
    const std::filesystem::path folder = std::filesystem::path(entry.place().source->name).parent_path();
    return (folder / entry.as_string()).lexically_normal().string();
  }

  std::vector<std::string>& files_;
  Problems& problems_;
  std::vector<std::string> open_;
};

bool is_name(std::string_view text) {
  const auto is_word = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !text.empty() && !(text.front() >= '0' && text.front() <= '9') && std::all_of(text.begin(), text.end(), is_word);
}

std::string expanded(const std::string& text, const Place& place) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 3, "$${") == 0) {
      result += "${";
      i += 3;
    } else if (text.compare(i, 2, "${") == 0) {
      const size_t end = text.find('}', i);
      if (end == std::string::npos) fail_at(place, "Y40", "'${' without '}'; write $${ where the text is meant");
      const std::string name = text.substr(i + 2, end - i - 2);
      if (!is_name(name)) fail_at(place, "Y40", fmt::format("'{}' is no name of an environment variable; write $${{ where the text is meant", printable(name)));
      const char* value = std::getenv(name.c_str());
      if (!value) fail_at(place, "Y40", fmt::format("environment variable {} is not set", name));
      result += value;
      i = end + 1;
    } else {
      result += text[i++];
    }
  }
  return result;
}

}  // namespace

void expand_variables(Value& value, Problems& problems) {
  if (value.is_list()) {
    for (Value& item : value.as_list()) expand_variables(item, problems);
  } else if (value.is_map()) {
    for (auto& member : value.as_map()) expand_variables(member.second, problems);
  } else if (value.is_string() && value.as_string().find("${") != std::string::npos) {
    problems.collect([&] {
      const Place place = value.place();
      const Place key_place = value.key_place();
      value = Value(expanded(value.as_string(), place));
      value.with_place(place).with_key_place(key_place);
    });
  }
}

std::string without_variables(std::string text) {
  // From the end, so that what is put in is not met again.
  for (size_t i = text.rfind("${"); i != std::string::npos; i = i == 0 ? std::string::npos : text.rfind("${", i - 1)) text.insert(i, "$");
  return text;
}

Value read_with_includes(const std::string& path, std::vector<std::string>& files, Problems& problems) {
  Value tree;
  Problems fatal;
  fatal.collect([&] { tree = Includes(files, problems).read(path); });
  if (fatal.empty()) return tree;
  for (const Problem& problem : problems.list()) fatal.add(problem);
  fatal.raise();
  return tree;
}

}  // namespace lockstep
