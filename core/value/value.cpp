#include "core/value/value.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {

std::string Place::text() const {
  if (!source) return {};
  if (line == 0) return source->name;
  return column == 0 ? fmt::format("{}:{}", source->name, line) : fmt::format("{}:{}:{}", source->name, line, column);
}

std::string Place::excerpt() const {
  if (!source || line == 0 || source->text.empty()) return {};
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    begin = source->text.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  std::string row = source->text.substr(begin, source->text.find('\n', begin) - begin);
  if (row.size() > 300) return {};
  if (!row.empty() && row.back() == '\r') row.pop_back();
  std::replace(row.begin(), row.end(), '\t', ' ');  // one column each, so that the caret fits
  std::string result = "  " + printable(row);
  if (column > 0) result += "\n  " + std::string(static_cast<size_t>(column - 1), ' ') + "^";
  return result;
}

namespace {

std::string kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null: return "nothing";
    case Value::Kind::boolean: return "true or false";
    case Value::Kind::integer: return "an integer";
    case Value::Kind::real: return "a number";
    case Value::Kind::string: return "text";
    case Value::Kind::list: return "a list";
    case Value::Kind::map: return "a mapping";
  }
  return {};
}

[[noreturn]] void wrong_kind(const Value& value, Value::Kind expected) {
  fail_at(value.place(), "Y12", fmt::format("expected {}, found {}", kind_name(expected), value.described()));
}

template <class T>
const T& get(const Value& value, const T* held, Value::Kind expected) {
  if (!held) wrong_kind(value, expected);
  return *held;
}

}  // namespace

bool Value::as_boolean() const { return get(*this, std::get_if<bool>(&data_), Kind::boolean); }
int64_t Value::as_integer() const { return get(*this, std::get_if<int64_t>(&data_), Kind::integer); }
double Value::as_number() const {
  if (const auto* integer = std::get_if<int64_t>(&data_)) return static_cast<double>(*integer);
  return get(*this, std::get_if<double>(&data_), Kind::real);
}
const std::string& Value::as_string() const { return get(*this, std::get_if<std::string>(&data_), Kind::string); }
const Value::List& Value::as_list() const { return get(*this, std::get_if<List>(&data_), Kind::list); }
const Value::Map& Value::as_map() const { return get(*this, std::get_if<Map>(&data_), Kind::map); }
Value::List& Value::as_list() { return const_cast<List&>(std::as_const(*this).as_list()); }
Value::Map& Value::as_map() { return const_cast<Map&>(std::as_const(*this).as_map()); }

const Value* Value::find(std::string_view key) const {
  const auto* map = std::get_if<Map>(&data_);
  if (!map) return nullptr;
  const auto found = std::find_if(map->begin(), map->end(), [&](const auto& member) { return member.first == key; });
  return found == map->end() ? nullptr : &found->second;
}

Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

const Value& Value::at(std::string_view key) const {
  if (!is_map()) wrong_kind(*this, Kind::map);
  const Value* found = find(key);
  if (!found) fail_at(place_, "Y11", fmt::format("'{}' is required", key));
  return *found;
}

Value& Value::set(std::string_view key, Value value) {
  if (is_null()) data_ = Map{};
  if (Value* found = find(key)) {
    *found = std::move(value);
    return *found;
  }
  return as_map().emplace_back(std::string(key), std::move(value)).second;
}

bool Value::erase(std::string_view key) {
  auto* map = std::get_if<Map>(&data_);
  return map && std::erase_if(*map, [&](const auto& member) { return member.first == key; }) > 0;
}

void Value::push_back(Value value) {
  if (is_null()) data_ = List{};
  as_list().push_back(std::move(value));
}

size_t Value::size() const {
  if (const auto* list = std::get_if<List>(&data_)) return list->size();
  if (const auto* map = std::get_if<Map>(&data_)) return map->size();
  return 0;
}

std::string Value::described() const {
  switch (kind()) {
    case Kind::boolean: return as_boolean() ? "true" : "false";
    case Kind::integer: return fmt::format("{}", as_integer());
    case Kind::real: return real_text(as_number());
    case Kind::string: return fmt::format("\"{}\"", printable(as_string().substr(0, 60)));
    default: return kind_name(kind());
  }
}

std::string real_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

Problem problem_at(const Place& place, std::string code, std::string message) {
  return {std::move(code), place.text(), std::move(message), place.excerpt()};
}

void fail_at(const Place& place, std::string code, std::string message) {
  throw Error({problem_at(place, std::move(code), std::move(message))});
}

}  // namespace lockstep
