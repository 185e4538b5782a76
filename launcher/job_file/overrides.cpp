#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "core/value/fields.h"
#include "io/yaml/yaml.h"
#include "launcher/job_file/job.h"
#include "launcher/job_file/merge.h"

namespace lockstep {
namespace {

constexpr std::string_view command_line = "command line: ";

/// One step of a path: a key, or an index into a list.
struct Step {
  std::string key;
  std::optional<size_t> index;
};

/// "layers[2].units" to its steps; throws Y41.
std::vector<Step> steps_of(std::string_view path, const Place& place) {
  const auto refuse = [&](std::string_view why) { fail_at(place, "Y41", fmt::format("'{}' is no path of keys: {}; write key.path=value, key[2].path=value, +new.key=value or ~key", printable(path), why)); };
  std::vector<Step> steps;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string_view part = path.substr(begin, end - begin);
    const size_t bracket = std::min(part.find('['), part.size());
    if (bracket == 0) refuse("a key is missing");
    steps.push_back({std::string(part.substr(0, bracket)), std::nullopt});
    part.remove_prefix(bracket);
    while (!part.empty()) {
      size_t index = 0;
      const size_t close = part.find(']');
      if (part.front() != '[' || close == std::string_view::npos) refuse("a bracket is wrong");
      const auto [stop, failure] = std::from_chars(part.data() + 1, part.data() + close, index);
      if (failure != std::errc() || stop != part.data() + close) refuse("an index is no number");
      steps.push_back({"", index});
      part.remove_prefix(close + 1);
    }
    begin = end + 1;
  }
  return steps;
}

void set_places(Value& value, const Place& place) {
  value.with_place(place).with_key_place(place);
  if (value.is_list()) {
    for (Value& item : value.as_list()) set_places(item, place);
  } else if (value.is_map()) {
    for (auto& member : value.as_map()) set_places(member.second, place);
  }
}

std::string walked(const std::vector<Step>& steps, size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) path = steps[i].index ? join_path(path, *steps[i].index) : join_path(path, steps[i].key);
  return path;
}

/// Walks a tree along a path, and the schema with it as far as that names keys.
class Walk {
 public:
  enum class Missing { refuse,
                       make_known,
                       make_any };

  Walk(Value& tree, const Value& schema, const std::vector<Step>& steps, const Place& place) : at_(&tree), schema_(&schema), steps_(steps), place_(place) {}

  /// The value at the path's first `count` steps.
  Value& go(size_t count, Missing missing) {
    for (size_t i = 0; i < count; ++i) {
      const bool last = i + 1 == count;
      if (steps_[i].index) {
        go_index(i, missing == Missing::make_any && last);
      } else {
        go_key(i, missing);
      }
    }
    return *at_;
  }

 private:
  [[noreturn]] void refuse(size_t count, const std::string& why) const {
    fail_at(place_, "Y41", fmt::format("no such key '{}'{}", walked(steps_, count), why));
  }

  void go_index(size_t i, bool append) {
    const size_t index = *steps_[i].index;
    if (append && at_->is_null()) *at_ = Value::list();
    if (!at_->is_list()) refuse(i + 1, fmt::format(": '{}' is {}, not a list", walked(steps_, i), at_->described()));
    Value::List& list = at_->as_list();
    if (append && index == list.size()) list.emplace_back();
    if (index >= list.size()) refuse(i + 1, fmt::format(": the list has {} items, counted from 0", list.size()));
    at_ = &list[index];
    schema_ = nullptr;
  }

  void go_key(size_t i, Missing missing) {
    const std::string& key = steps_[i].key;
    const Value* known = schema_ ? member_schema(*schema_, key) : nullptr;
    const bool make = missing == Missing::make_any || (missing == Missing::make_known && known);
    if (at_->is_null() && make) *at_ = Value::map();
    if (!at_->is_map() && !at_->is_null()) refuse(i + 1, fmt::format(": '{}' is {}, not a mapping", walked(steps_, i), at_->described()));
    Value* next = at_->find(key);
    if (!next && !make) {
      std::vector<std::string> names = schema_ ? members_of(*schema_) : std::vector<std::string>();
      const bool any = names.empty();
      if (at_->is_map()) {
        for (const auto& member : at_->as_map()) names.push_back(member.first);
      }
      const std::string hint = did_you_mean(key, names);
      refuse(i + 1, !hint.empty() ? hint : any && missing == Missing::make_known ? fmt::format("; +{}=... adds it", walked(steps_, steps_.size()))
                                                                                 : "");
    }
    at_ = next ? next : &at_->set(key, Value().with_key_place(place_).with_place(place_));
    schema_ = known;
  }

  Value* at_;
  const Value* schema_;
  const std::vector<Step>& steps_;
  const Place& place_;
};

void apply(Value& tree, const Value& schema, const std::string& text) {
  const Place place{std::make_shared<const SourceText>(SourceText{fmt::format("{}'{}'", command_line, printable(text)), ""}), 0, 0};
  if (text.starts_with("~")) {
    const std::vector<Step> steps = steps_of(std::string_view(text).substr(1), place);
    Walk(tree, schema, steps, place).go(steps.size(), Walk::Missing::refuse);
    Value& parent = Walk(tree, schema, steps, place).go(steps.size() - 1, Walk::Missing::refuse);
    if (steps.back().index) {
      parent.as_list().erase(parent.as_list().begin() + static_cast<std::ptrdiff_t>(*steps.back().index));
    } else {
      parent.erase(steps.back().key);
    }
    return;
  }
  const bool adds = text.starts_with("+");
  const size_t equals = text.find('=');
  if (equals == std::string::npos) fail_at(place, "Y41", "expected key.path=value, +new.key=value or ~key");
  const std::vector<Step> steps = steps_of(std::string_view(text).substr(adds ? 1 : 0, equals - (adds ? 1 : 0)), place);
  if (steps.front().key == "include") fail_at(place, "Y41", "files are included by the job file only");
  Value value;
  try {
    value = read_yaml_text("value", text.substr(equals + 1));
    Problems problems;
    expand_variables(value, problems);
    problems.raise();
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem = {problem.code == "Y40" ? "Y40" : "Y41", place.text(), problem.message, ""};
    throw Error(std::move(problems));
  }
  set_places(value, place);
  Value& target = Walk(tree, schema, steps, place).go(steps.size(), adds ? Walk::Missing::make_any : Walk::Missing::make_known);
  target = std::move(value);
}

}  // namespace

bool is_from_command_line(const Place& place) { return place.source && place.source->name.starts_with(command_line); }

void apply_overrides(Value& tree, const Value& schema, const std::vector<std::string>& overrides, Problems& problems) {
  for (const std::string& text : overrides) problems.collect([&] { apply(tree, schema, text); });
}

}  // namespace lockstep
