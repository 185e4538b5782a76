#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error/error.h"

namespace lockstep {

/// The text that places point into: kept once, so that an error can show the line.
struct SourceText {
  std::string name;  ///< as the user wrote it: "job.yaml", "command line", "model.h5: model_config"
  std::string text;  ///< the whole text, or empty
};

/// Where a part of a tree came from. Lines and columns count from 1; 0 means unknown.
struct Place {
  std::shared_ptr<const SourceText> source;
  int line = 0;
  int column = 0;

  /// "job.yaml:14:5", or as much of it as is known.
  std::string text() const;
  /// The line with a caret below the column, or empty.
  std::string excerpt() const;
};

/// A tree of mappings, lists and scalars, each with its place: what YAML and JSON are read into and layers are made of. Mappings keep their order.
class Value {
 public:
  enum class Kind { null, boolean, integer, real, string, list, map };
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;

  Value() = default;
  Value(bool value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Map value) : data_(std::move(value)) {}
  static Value list() { return Value(List{}); }
  static Value map() { return Value(Map{}); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_boolean() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_list() const { return kind() == Kind::list; }
  bool is_map() const { return kind() == Kind::map; }

  /// Each throws Y12 at this value's place when the kind is another. An integer is a number; a number without fraction is no integer.
  bool as_boolean() const;
  int64_t as_integer() const;
  double as_number() const;
  const std::string& as_string() const;
  const List& as_list() const;
  const Map& as_map() const;
  List& as_list();
  Map& as_map();

  /// The member, or null when absent or when this is no mapping.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// The member; throws Y11 naming the key when absent.
  const Value& at(std::string_view key) const;
  /// Replaces or appends a member; makes a null value a mapping.
  Value& set(std::string_view key, Value value);
  bool erase(std::string_view key);
  void push_back(Value value);
  size_t size() const;

  const Place& place() const { return place_; }
  Value& with_place(Place place) {
    place_ = std::move(place);
    return *this;
  }
  /// Place of the key itself, for members of a mapping read from text; else unknown.
  const Place& key_place() const { return key_place_; }
  Value& with_key_place(Place place) {
    key_place_ = std::move(place);
    return *this;
  }

  /// Same tree, places apart. 1 and 1.0 differ.
  bool operator==(const Value& other) const { return data_ == other.data_; }

  /// "an integer", "the text \"many\"", "a list": for messages.
  std::string described() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> data_;
  Place place_;
  Place key_place_;
};

/// The shortest text that reads back as the same number and can't be taken for an integer: "0.1", "3.0", "1e-05", "nan", "-inf".
std::string real_text(double number);

/// A problem at a value's place, with its excerpt.
Problem problem_at(const Place& place, std::string code, std::string message);
[[noreturn]] void fail_at(const Place& place, std::string code, std::string message);

}  // namespace lockstep
