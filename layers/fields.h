#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "core/value/fields.h"

/// Members of layers' configs that have a form of their own in Keras.
namespace lockstep {

/// A key of Keras that must be null here (a constraint), or is absent. Anything else: Y13 naming what was found.
struct OnlyNull {};

template <>
struct FieldType<OnlyNull> {
  static OnlyNull read(const Value& value, const std::string& path);
  static Value write(OnlyNull) { return {}; }
  static Value schema() { return Value(Value::Map{{"type", "null"}}); }
};

/// A key of Keras that must be false here.
struct OnlyFalse {};

template <>
struct FieldType<OnlyFalse> {
  static OnlyFalse read(const Value& value, const std::string& path);
  static Value write(OnlyFalse) { return false; }
  static Value schema() { return Value(Value::Map{{"const", false}}); }
};

/// data_format: "channels_last", the only order of axes here; null means it too.
struct ChannelsLast {};

template <>
struct FieldType<ChannelsLast> {
  static ChannelsLast read(const Value& value, const std::string& path);
  static Value write(ChannelsLast) { return "channels_last"; }
  static Value schema() { return Value(Value::Map{{"enum", Value(Value::List{"channels_last", Value()})}}); }
};

/// Height and width: a list of two integers, or one for both.
struct Pair {
  int64_t first = 1;
  int64_t second = 1;

  std::vector<int64_t> list() const { return {first, second}; }
};

template <>
struct FieldType<Pair> {
  static Pair read(const Value& value, const std::string& path);
  static Value write(const Pair& pair) { return Value(Value::List{pair.first, pair.second}); }
  static Value schema();
};

/// An axis that Keras 2 writes as a list of one.
struct Axis {
  int64_t index = -1;
};

template <>
struct FieldType<Axis> {
  static Axis read(const Value& value, const std::string& path);
  static Value write(const Axis& axis) { return axis.index; }
  static Value schema() { return FieldType<int64_t>::schema(); }
};

/// A number, or one for each element of the last axis.
struct Numbers {
  std::vector<double> values;
  bool scalar = true;

  static Numbers of(double value) { return {{value}, true}; }
};

template <>
struct FieldType<Numbers> {
  static Numbers read(const Value& value, const std::string& path);
  static Value write(const Numbers& numbers);
  static Value schema();
};

/// A constraint of a weight: null. Written as Keras does.
void add_constraint(Fields& fields, std::string_view name, OnlyNull& member);
/// A key that newer or older files have with a null that means nothing here: read, never written.
void accept_null(Fields& fields, std::string_view name);

/// Throws M10 unless the layer `path` got so many inputs.
void expect_inputs(std::string_view path, std::span<const Symbol> inputs, size_t count);
/// Throws M11 unless x has this rank; `shape` tells what is expected: "(rows, height, width, channels)".
void expect_rank(std::string_view path, Symbol x, size_t rank, std::string_view shape);
/// The axis counted from the front; M11 when x has no such axis.
int64_t checked_axis(std::string_view path, Symbol x, int64_t axis);

}  // namespace lockstep
