#include "core/value/fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace lockstep {

Field& Field::require() {
  required = true;
  return *this;
}

Field& Field::at_least(double bound) {
  minimum = bound;
  return *this;
}

Field& Field::greater_than(double bound) {
  above = bound;
  return *this;
}

Field& Field::at_most(double bound) {
  maximum = bound;
  return *this;
}

Field& Field::one_of(std::vector<std::string> names) {
  choices = std::move(names);
  return *this;
}

std::vector<std::string> Fields::names() const {
  std::vector<std::string> result;
  for (const Field& field : list_) result.push_back(field.name);
  return result;
}

void Problems::collect(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    list_.insert(list_.end(), error.problems().begin(), error.problems().end());
  }
}

namespace {
constexpr size_t told_problems = 20;
}

bool Problems::full() const { return list_.size() >= told_problems; }

void Problems::raise() const {
  if (list_.empty()) return;
  std::vector<Problem> told;
  for (const Problem& problem : list_) {
    const bool seen = std::any_of(told.begin(), told.end(), [&](const Problem& other) { return other.text() == problem.text(); });
    if (!seen && told.size() < told_problems) told.push_back(problem);
  }
  throw Error(std::move(told));
}

std::string join_path(const std::string& path, std::string_view key) { return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key); }
std::string join_path(const std::string& path, size_t index) { return fmt::format("{}[{}]", path, index); }

namespace {

/// Bounds and choices of one value; lists are checked member by member.
void check(const Field& field, const Value& value, const std::string& path) {
  if (value.is_list()) {
    for (size_t i = 0; i < value.size(); ++i) check(field, value.as_list()[i], join_path(path, i));
    return;
  }
  const auto refuse = [&](const std::string& expected) { fail_at(value.place(), "Y13", fmt::format("{}: must be {}, found {}", path, expected, value.described())); };
  if (value.is_number()) {
    const double number = value.as_number();
    if (field.minimum && number < *field.minimum) refuse(fmt::format(">= {}", *field.minimum));
    if (field.above && number <= *field.above) refuse(fmt::format("> {}", *field.above));
    if (field.maximum && number > *field.maximum) refuse(fmt::format("<= {}", *field.maximum));
  }
  if (value.is_string() && !field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), value.as_string()) == field.choices.end()) {
    fail_at(value.place(), "Y13", fmt::format("{}: unknown '{}'{}; known: {}", path, printable(value.as_string()), did_you_mean(value.as_string(), field.choices), fmt::join(field.choices, ", ")));
  }
}

}  // namespace

void read_fields(const Value& mapping, Fields& fields, const std::string& path) {
  Problems problems;
  const std::string section = path.empty() ? "the top level" : fmt::format("'{}'", path);
  if (!mapping.is_map() && !mapping.is_null()) fail_at(mapping.place(), "Y12", fmt::format("{} must be a mapping, found {}", section, mapping.described()));
  const Value::Map empty;
  const Value::Map& members = mapping.is_null() ? empty : mapping.as_map();
  for (const auto& [key, value] : members) {
    if (problems.full()) break;
    const auto field = std::find_if(fields.list().begin(), fields.list().end(), [&, &name = key](const Field& f) { return f.name == name; });
    if (field != fields.list().end()) {
      problems.collect([&, &key = key, &value = value] {
        const std::string place = join_path(path, key);
        field->read(value, place);
        check(*field, value, place);
      });
      continue;
    }
    if (std::find(fields.ignored().begin(), fields.ignored().end(), key) != fields.ignored().end()) continue;
    const Place& place = value.key_place().source ? value.key_place() : value.place();
    const auto refused = std::find_if(fields.refused().begin(), fields.refused().end(), [&, &name = key](const auto& r) { return r.first == name; });
    if (refused != fields.refused().end()) {
      problems.add(problem_at(place, "Y10", fmt::format("'{}' in {}: {}", key, section, refused->second)));
      continue;
    }
    std::vector<std::string> known = fields.names();
    known.insert(known.end(), fields.ignored().begin(), fields.ignored().end());
    std::string hint = did_you_mean(key, known);
    if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known, ", "));
    problems.add(problem_at(place, "Y09", fmt::format("unknown key '{}' in {}{}", printable(key), section, hint)));
  }
  for (const Field& field : fields.list()) {
    if (field.required && !mapping.find(field.name)) {
      problems.add(problem_at(mapping.place(), "Y11", fmt::format("'{}' is required: {}", join_path(path, field.name), field.sentence)));
    }
  }
  problems.raise();
}

Value write_fields(const Fields& fields) {
  Value mapping = Value::map();
  for (const Field& field : fields.list()) {
    if (field.write) mapping.set(field.name, field.write());
  }
  return mapping;
}

namespace {

/// Bounds and choices hold for the members of a list, and for a value that is not null.
void constrain(Value& schema, const Field& field) {
  if (Value* items = schema.find("items")) return constrain(*items, field);
  if (Value* either = schema.find("anyOf")) return constrain(either->as_list().front(), field);
  if (field.minimum) schema.set("minimum", *field.minimum);
  if (field.above) schema.set("exclusiveMinimum", *field.above);
  if (field.maximum) schema.set("maximum", *field.maximum);
  if (field.choices.empty()) return;
  Value names = Value::list();
  for (const std::string& name : field.choices) names.push_back(name);
  schema.set("enum", std::move(names));
}

}  // namespace

Value schema_of(const Fields& fields) {
  Value properties = Value::map();
  Value required = Value::list();
  for (const Field& field : fields.list()) {
    Value schema = field.schema;
    constrain(schema, field);
    schema.set("description", field.sentence);
    properties.set(field.name, std::move(schema));
    if (field.required) required.push_back(field.name);
  }
  Value result(Value::Map{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}});
  if (required.size() > 0) result.set("required", std::move(required));
  return result;
}

const Value::List& list_of(const Value& value, const std::string& path) {
  if (!value.is_list()) fail_at(value.place(), "Y12", fmt::format("{}: expected a list, found {}", path, value.described()));
  return value.as_list();
}

const Value::Map& map_of(const Value& value, const std::string& path) {
  if (!value.is_map()) fail_at(value.place(), "Y12", fmt::format("{}: expected a mapping, found {}", path, value.described()));
  return value.as_map();
}

bool FieldType<bool>::read(const Value& value, const std::string& path) {
  if (!value.is_boolean()) fail_at(value.place(), "Y12", fmt::format("{}: expected true or false, found {}", path, value.described()));
  return value.as_boolean();
}

int64_t FieldType<int64_t>::read(const Value& value, const std::string& path) {
  if (!value.is_integer()) {
    const bool whole = value.is_number() && value.as_number() == std::floor(value.as_number()) && std::abs(value.as_number()) < 9e15;
    const std::string hint = whole ? fmt::format("; write {}", static_cast<int64_t>(value.as_number())) : "";
    fail_at(value.place(), value.is_number() ? "Y17" : "Y12", fmt::format("{}: expected an integer, found {}{}", path, value.described(), hint));
  }
  return value.as_integer();
}

double FieldType<double>::read(const Value& value, const std::string& path) {
  if (!value.is_number()) fail_at(value.place(), "Y12", fmt::format("{}: expected a number, found {}", path, value.described()));
  if (!std::isfinite(value.as_number())) fail_at(value.place(), "Y14", fmt::format("{}: must be a finite number", path));
  return value.as_number();
}

std::string FieldType<std::string>::read(const Value& value, const std::string& path) {
  if (!value.is_string()) fail_at(value.place(), "Y12", fmt::format("{}: expected text, found {}", path, value.described()));
  return value.as_string();
}

Value FieldType<bool>::schema() { return Value(Value::Map{{"type", "boolean"}}); }
Value FieldType<int64_t>::schema() { return Value(Value::Map{{"type", "integer"}}); }
Value FieldType<double>::schema() { return Value(Value::Map{{"type", "number"}}); }
Value FieldType<std::string>::schema() { return Value(Value::Map{{"type", "string"}}); }

}  // namespace lockstep
