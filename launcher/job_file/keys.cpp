#include "launcher/job_file/keys.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "launcher/job_file/job.h"

namespace lockstep {
namespace {

/// A section that has a key, and what may stand there; the top is the empty path.
struct Owner {
  std::string section;
  const Value* schema;
};
using Owners = std::map<std::string, std::vector<Owner>, std::less<>>;

void collect_owners(const Value& schema, const std::string& path, Owners& owners) {
  for (const std::string& key : members_of(schema)) {
    const Value* member = member_schema(schema, key);
    owners[key].push_back({path, member});
    collect_owners(*member, join_path(path, key), owners);
  }
}

const Place& key_place_of(const Value& value) { return value.key_place().source ? value.key_place() : value.place(); }

void refuse_batch_size(const Value& value, Problems& problems) {
  problems.add(problem_at(key_place_of(value), "Y10", "'batch_size' is not a key of jobs: write global_batch (rows of one weight update, all replicas together)"));
}

/// Whether a value is one of the few that a section takes, where it takes only these.
bool may_take(const Owner& owner, const Value& value) {
  const Value* choices = owner.schema->find("enum");
  if (!choices) return true;
  const Value::List& list = choices->as_list();
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string belongs(const std::string& key, const Value& value, const std::vector<Owner>& owners, const std::string& path) {
  const bool some_may = std::any_of(owners.begin(), owners.end(), [&](const Owner& owner) { return may_take(owner, value); });
  std::string where;
  for (const Owner& owner : owners) {
    if (some_may && !may_take(owner, value)) continue;
    where += (where.empty() ? "" : " or ") + (owner.section.empty() ? "at the top" : fmt::format("under '{}'", owner.section));
  }
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
      problems.add(problem_at(key_place_of(member), "Y10", belongs(key, member, found->second, path)));
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
