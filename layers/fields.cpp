#include "layers/fields.h"

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

Value one_or_list(Value item) {
  Value list(Value::Map{{"type", "array"}, {"items", item}});
  return Value(Value::Map{{"anyOf", Value(Value::List{std::move(item), std::move(list)})}});
}

/// What a person would call the object: its class, where it has one.
std::string called(const Value& value) {
  const Value* name = value.find("class_name");
  if (!name) name = value.find("type");
  return name && name->is_string() ? fmt::format("'{}'", printable(name->as_string())) : value.described();
}

}  // namespace

OnlyNull FieldType<OnlyNull>::read(const Value& value, const std::string& path) {
  if (!value.is_null()) fail_at(value.place(), "Y13", fmt::format("{}: found {}, which lockstep does not apply; only null is taken, so that nothing is left out silently", path, called(value)));
  return {};
}

OnlyFalse FieldType<OnlyFalse>::read(const Value& value, const std::string& path) {
  if (value.is_null() || (value.is_boolean() && !value.as_boolean())) return {};
  fail_at(value.place(), "Y13", fmt::format("{}: found {}, which lockstep does not apply; only false is taken, so that nothing is left out silently", path, value.described()));
}

ChannelsLast FieldType<ChannelsLast>::read(const Value& value, const std::string& path) {
  if (value.is_null() || (value.is_string() && value.as_string() == "channels_last")) return {};
  fail_at(value.place(), "Y13", fmt::format("{}: must be \"channels_last\", found {}; axes are (rows, height, width, channels)", path, value.described()));
}

Pair FieldType<Pair>::read(const Value& value, const std::string& path) {
  if (value.is_integer()) return {value.as_integer(), value.as_integer()};
  if (!value.is_list() || value.size() != 2) fail_at(value.place(), "Y12", fmt::format("{}: expected an integer or a list of two, found {}", path, value.described()));
  const Value::List& list = value.as_list();
  return {FieldType<int64_t>::read(list[0], join_path(path, 0)), FieldType<int64_t>::read(list[1], join_path(path, 1))};
}

Value FieldType<Pair>::schema() { return one_or_list(FieldType<int64_t>::schema()); }

Axis FieldType<Axis>::read(const Value& value, const std::string& path) {
  if (value.is_list() && value.size() == 1) return {FieldType<int64_t>::read(value.as_list()[0], join_path(path, 0))};
  if (value.is_list()) fail_at(value.place(), "Y13", fmt::format("{}: expected one axis, found {}", path, value.size()));
  return {FieldType<int64_t>::read(value, path)};
}

Numbers FieldType<Numbers>::read(const Value& value, const std::string& path) {
  if (!value.is_list()) return Numbers::of(FieldType<double>::read(value, path));
  return {FieldType<std::vector<double>>::read(value, path), false};
}

Value FieldType<Numbers>::write(const Numbers& numbers) {
  if (numbers.scalar) return numbers.values.front();
  return FieldType<std::vector<double>>::write(numbers.values);
}

Value FieldType<Numbers>::schema() { return one_or_list(FieldType<double>::schema()); }

void add_constraint(Fields& fields, std::string_view name, OnlyNull& member) { fields.add(name, member, "null: weights are not constrained"); }

void accept_null(Fields& fields, std::string_view name) {
  // The member is only a place to read into: its value is always null.
  static OnlyNull nothing;
  fields.add(name, nothing, "null").write = nullptr;
}

void expect_inputs(std::string_view path, std::span<const Symbol> inputs, size_t count) {
  if (inputs.size() != count) throw Error("M10", std::string(path), fmt::format("takes {} input{}, got {}", count, count == 1 ? "" : "s", inputs.size()));
}

void expect_rank(std::string_view path, Symbol x, size_t rank, std::string_view shape) {
  if (x.shape().size() != rank) throw Error("M11", std::string(path), fmt::format("needs inputs of shape {}, got {}", shape, text_of(x.shape())));
}

int64_t checked_axis(std::string_view path, Symbol x, int64_t axis) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (axis < -rank || axis >= rank) throw Error("M11", std::string(path), fmt::format("axis {} is not one of the input's, which is {}", axis, text_of(x.shape())));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace lockstep
