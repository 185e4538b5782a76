#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/value.h"

namespace lockstep {

class Fields;

/// A struct that describes its members once, in `fields()`; reading, writing, the JSON schema, the help and reference.yaml all come from that description.
template <class T>
concept Described = requires(T& object, Fields& fields) { object.fields(fields); };

/// How a member's type is read from and written to a Value. Specialise it for a type with a form of its own.
/// `path` names the member in messages: "train.epochs".
template <class T>
struct FieldType;

/// One member of a described struct.
struct Field {
  std::string name;
  std::string sentence;  ///< what it means, for the help and reference.yaml
  bool required = false;
  std::function<void(const Value&, const std::string& path)> read;  ///< into the member; throws Error
  std::function<Value()> write;                                     ///< from the member; null for a key that is read but never written
  Value schema;                                                     ///< JSON schema of the value, without bounds
  std::optional<double> minimum;                                    ///< inclusive
  std::optional<double> above;                                      ///< exclusive
  std::optional<double> maximum;                                    ///< inclusive
  std::vector<std::string> choices;                                 ///< for text

  /// The mapping must have this key.
  Field& require();
  Field& at_least(double bound);
  Field& greater_than(double bound);
  Field& at_most(double bound);
  Field& one_of(std::vector<std::string> names);
};

/// The description of a struct: an ordered list of its members.
class Fields {
 public:
  /// The member's value now is the default. The member must outlive this description.
  template <class T>
  Field& add(std::string_view name, T& member, std::string_view sentence) {
    Field field;
    field.name = name;
    field.sentence = sentence;
    field.read = [&member](const Value& value, const std::string& path) { member = FieldType<T>::read(value, path); };
    field.write = [&member] { return FieldType<T>::write(member); };
    field.schema = FieldType<T>::schema();
    list_.push_back(std::move(field));
    return list_.back();
  }
  /// A key that belongs elsewhere: Y10 with this sentence ("write global_batch ...").
  void refuse(std::string_view name, std::string_view sentence) { refused_.emplace_back(name, sentence); }
  /// Keys accepted and left alone: for a struct whose mapping is shared with another reader ("type", "name", "inputs").
  void ignore(std::string_view name) { ignored_.emplace_back(name); }

  const std::vector<Field>& list() const { return list_; }
  const std::vector<std::pair<std::string, std::string>>& refused() const { return refused_; }
  const std::vector<std::string>& ignored() const { return ignored_; }
  std::vector<std::string> names() const;

 private:
  std::vector<Field> list_;
  std::vector<std::pair<std::string, std::string>> refused_;
  std::vector<std::string> ignored_;
};

/// Collects problems, so that all of a file are told at once.
class Problems {
 public:
  /// Runs `step`; what it throws as Error is kept.
  void collect(const std::function<void()>& step);
  void add(Problem problem) { list_.push_back(std::move(problem)); }
  bool empty() const { return list_.empty(); }
  /// As many as raise() tells: a reader of a hostile file need not look further.
  bool full() const;
  const std::vector<Problem>& list() const { return list_; }
  /// Throws one Error with the first 20 when there are any.
  void raise() const;

 private:
  std::vector<Problem> list_;
};

/// Reads a mapping into described members. Unknown keys (Y09, with the nearest name), refused keys (Y10), missing required keys (Y11), wrong types
/// (Y12) and values out of range (Y13) are collected and thrown together. `path` is the mapping's own: "train", or empty for the top.
void read_fields(const Value& mapping, Fields& fields, const std::string& path);
Value write_fields(const Fields& fields);
/// JSON schema (draft 2020-12) of the mapping: types, bounds, required, additionalProperties false.
Value schema_of(const Fields& fields);

template <Described T>
T read_described(const Value& mapping, const std::string& path) {
  T object;
  Fields fields;
  object.fields(fields);
  read_fields(mapping, fields, path);
  return object;
}

/// Joins with a dot: "train" and "epochs" to "train.epochs"; a list's index as "layers[3]".
std::string join_path(const std::string& path, std::string_view key);
std::string join_path(const std::string& path, size_t index);

/// The parts of a list or a mapping; throws Y12 that names the member when the value is something else.
const Value::List& list_of(const Value& value, const std::string& path);
const Value::Map& map_of(const Value& value, const std::string& path);

template <>
struct FieldType<bool> {
  static bool read(const Value& value, const std::string& path);
  static Value write(bool value) { return value; }
  static Value schema();
};

template <>
struct FieldType<int64_t> {
  static int64_t read(const Value& value, const std::string& path);
  static Value write(int64_t value) { return value; }
  static Value schema();
};

template <>
struct FieldType<double> {
  /// An integer is taken too; not a number, infinite: Y14.
  static double read(const Value& value, const std::string& path);
  static Value write(double value) { return value; }
  static Value schema();
};

template <>
struct FieldType<std::string> {
  static std::string read(const Value& value, const std::string& path);
  static Value write(const std::string& value) { return value; }
  static Value schema();
};

/// Any tree: for parts that are read later, with their places.
template <>
struct FieldType<Value> {
  static Value read(const Value& value, const std::string&) { return value; }
  static Value write(const Value& value) { return value; }
  static Value schema() { return Value::map(); }
};

template <class T>
struct FieldType<std::optional<T>> {
  static std::optional<T> read(const Value& value, const std::string& path) {
    if (value.is_null()) return std::nullopt;
    return FieldType<T>::read(value, path);
  }
  static Value write(const std::optional<T>& value) { return value ? FieldType<T>::write(*value) : Value(); }
  static Value schema() { return Value(Value::Map{{"anyOf", Value(Value::List{FieldType<T>::schema(), Value(Value::Map{{"type", "null"}})})}}); }
};

template <class T>
struct FieldType<std::vector<T>> {
  static std::vector<T> read(const Value& value, const std::string& path) {
    std::vector<T> result;
    Problems problems;
    const Value::List& list = list_of(value, path);
    for (size_t i = 0; i < list.size(); ++i) problems.collect([&] { result.push_back(FieldType<T>::read(list[i], join_path(path, i))); });
    problems.raise();
    return result;
  }
  static Value write(const std::vector<T>& values) {
    Value list = Value::list();
    for (const T& value : values) list.push_back(FieldType<T>::write(value));
    return list;
  }
  static Value schema() { return Value(Value::Map{{"type", "array"}, {"items", FieldType<T>::schema()}}); }
};

template <class T>
struct FieldType<std::map<std::string, T>> {
  static std::map<std::string, T> read(const Value& value, const std::string& path) {
    std::map<std::string, T> result;
    Problems problems;
    for (const auto& [key, member] : map_of(value, path)) problems.collect([&] { result.emplace(key, FieldType<T>::read(member, join_path(path, key))); });
    problems.raise();
    return result;
  }
  static Value write(const std::map<std::string, T>& values) {
    Value map = Value::map();
    for (const auto& [key, value] : values) map.set(key, FieldType<T>::write(value));
    return map;
  }
  static Value schema() { return Value(Value::Map{{"type", "object"}, {"additionalProperties", FieldType<T>::schema()}}); }
};

template <Described T>
struct FieldType<T> {
  static T read(const Value& value, const std::string& path) { return read_described<T>(value, path); }
  static Value write(const T& object) {
    Fields fields;
    const_cast<T&>(object).fields(fields);  // only reads
    return write_fields(fields);
  }
  static Value schema() {
    T object;
    Fields fields;
    object.fields(fields);
    return schema_of(fields);
  }
};

}  // namespace lockstep
