#include "launcher/job_file/keys.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "launcher/job_file/job.h"

namespace lockstep {
namespace {

/// Every key of a job with the sections that have it; the top is the empty path.
using Owners = std::map<std::string, std::vector<std::string>, std::less<>>;

void collect_owners(const Value& schema, const std::string& path, Owners& owners) {
  for (const std::string& key : members_of(schema)) {
    owners[key].push_back(path);
    collect_owners(*member_schema(schema, key), join_path(path, key), owners);
  }
}

const Place& key_place_of(const Value& value) { return value.key_place().source ? value.key_place() : value.place(); }

void refuse_batch_size(const Value& value, Problems& problems) {
  problems.add(problem_at(key_place_of(value), "Y10", "'batch_size' is not a key of jobs: write global_batch (rows of one weight update, all replicas together)"));
}

std::string belongs(const std::string& key, const std::vector<std::string>& sections, const std::string& path) {
  std::string where;
  for (const std::string& section : sections) where += (where.empty() ? "" : " or ") + (section.empty() ? "at the top" : fmt::format("under '{}'", section));
  return fmt::format("'{}' belongs {}, not {}", printable(key), where, path.empty() ? "at the top" : fmt::format("under '{}'", path));
}

/// Below a part that others read: only batch_size is looked for.
void look_for_batch_size(const Value& value, Problems& problems) {
  if (value.is_list()) {
    for (const Value& item : value.as_list()) look_for_batch_size(item, problems);
  } else if (value.is_map()) {
    for (const auto& [key, member] : value.as_map()) {
      if (key == "batch_size") refuse_batch_size(member, problems);
      // Layers and their parameters may be called anything.
      if (key != "layers") look_for_batch_size(member, problems);
    }
  }
}

void check(Value& value, const Value& schema, const std::string& path, const Owners& owners, Problems& problems) {
  const std::vector<std::string> names = members_of(schema);
  if (names.empty()) {
    if (path != "custom_layers" && path != "faults") look_for_batch_size(value, problems);
    return;
  }
  if (!value.is_map()) return;
  std::vector<std::string> refused;
  for (auto& [key, member] : value.as_map()) {
    if (problems.full()) return;
    if (const Value* known = member_schema(schema, key)) {
      check(member, *known, join_path(path, key), owners, problems);
      continue;
    }
    if (key == "batch_size") {
      refuse_batch_size(member, problems);
    } else if (const auto found = owners.find(key); found != owners.end() && nearest(key, names).empty()) {
      problems.add(problem_at(key_place_of(member), "Y10", belongs(key, found->second, path)));
    } else {
      continue;  // left for the reader of the section
    }
    refused.push_back(key);
  }
  for (const std::string& key : refused) value.erase(key);
}

}  // namespace

void check_sections(Value& tree, const Value& schema, Problems& problems) {
  Owners owners;
  collect_owners(schema, "", owners);
  check(tree, schema, "", owners, problems);
}

}  // namespace lockstep
