#include "io/data/synthetic.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/random/philox.h"

namespace lockstep {

void SyntheticColumn::fields(Fields& fields) {
  fields.add("fill", fill, "Every element: ones, zeros or a number.");
  fields.add("random", random, "The distribution of the elements.").one_of({"integer", "uniform", "normal", "one_hot"});
  fields.add("low", low, "The lowest random value; 0 by default.");
  fields.add("high", high, "The end of the random values, itself left out; required for integers, else 1 by default.");
  fields.add("mean", mean, "Of normal values; 0 by default.");
  fields.add("stddev", stddev, "The standard deviation of normal values; 1 by default.").at_least(0);
  fields.add("shape", shape, "Of one row; the model's by default.").at_least(0);
  fields.add("dtype", dtype, "Of the elements; the model's by default for inputs, else int64 for integers and float32.");
}

bool SyntheticColumn::describes(const Value& value) { return value.find("fill") || value.find("random"); }

namespace {

enum class Distribution { constant,
                          integer,
                          uniform,
                          normal,
                          one_hot };  // a random one of the last axis is 1, the others are 0

struct Recipe {
  Distribution distribution = Distribution::constant;
  double low = 0;   ///< the constant; the mean
  double high = 1;  ///< the standard deviation
};

class SyntheticArray : public RowArray {
 public:
  SyntheticArray(std::string place, DType dtype, const Shape& shape, Recipe recipe, RandomKey key) : RowArray(std::move(place), dtype, shape), recipe_(recipe), key_(key) {}

  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override {
    const size_t elements = static_cast<size_t>(row().elements());
    visit_any(row().dtype, [&]<class T>(Tag<T>) {
      T* values = reinterpret_cast<T*>(out.data());
      for (const int64_t row : rows) {
        for (size_t i = 0; i < elements; ++i) *values++ = value_at<T>(static_cast<uint64_t>(row), i);
      }
    });
  }

 private:
  template <class T>
  T value_at(uint64_t row, uint64_t element) const {
    switch (recipe_.distribution) {
      case Distribution::constant:
        return static_cast<T>(recipe_.low);
      case Distribution::integer:
        return static_cast<T>(integer_at(key_, row, element, static_cast<int64_t>(recipe_.low), static_cast<int64_t>(recipe_.high)));
      case Distribution::uniform:
        return static_cast<T>(recipe_.low + (recipe_.high - recipe_.low) * uniform_f64_at(key_, row, element));
      case Distribution::normal:
        return static_cast<T>(recipe_.low + recipe_.high * normal_at(key_, row, element));
      case Distribution::one_hot: {
        const auto classes = static_cast<uint64_t>(recipe_.high);
        return static_cast<T>(static_cast<uint64_t>(integer_at(key_, row, element / classes, 0, static_cast<int64_t>(classes))) == element % classes);
      }
    }
    return T{};
  }

  Recipe recipe_;
  RandomKey key_;
};

double constant_of(const Value& fill, const std::string& path) {
  if (fill.is_number()) return FieldType<double>::read(fill, path);
  if (fill.is_string() && fill.as_string() == "ones") return 1;
  if (fill.is_string() && fill.as_string() == "zeros") return 0;
  fail_at(fill.place(), "Y13", fmt::format("{}: expected ones, zeros or a number, found {}", path, fill.described()));
}

Recipe recipe_of(const SyntheticColumn& column, const Value& description, const std::string& path) {
  const auto refuse = [&](const std::string& message) { fail_at(description.place(), "Y13", fmt::format("{}: {}", path, message)); };
  if (column.fill.is_null() == !column.random) refuse("write either fill: ones, zeros or a number, or random: integer, uniform or normal");
  const bool normal = column.random == "normal";
  if ((!column.random || normal) && (column.low || column.high)) refuse("low and high belong to random: integer and random: uniform");
  if (!normal && (column.mean || column.stddev)) refuse("mean and stddev belong to random: normal");
  if (!column.random) return {Distribution::constant, constant_of(column.fill, join_path(path, "fill")), 0};
  if (normal) return {Distribution::normal, column.mean.value_or(0), column.stddev.value_or(1)};
  if (column.random == "one_hot") {
    if (column.low || column.high) refuse("random: one_hot has as many classes as the last axis of its shape");
    return {Distribution::one_hot, 0, 1};
  }
  const bool integer = *column.random == "integer";
  const double low = column.low.value_or(0);
  if (integer && !column.high) refuse("random: integer needs high, the first integer that is left out: high: 2 gives 0 and 1");
  const double high = column.high.value_or(1);
  constexpr double exact = 0x1p52;
  if (integer && (low != std::floor(low) || high != std::floor(high) || std::abs(low) > exact || std::abs(high) > exact)) refuse("low and high of random: integer must be integers of at most 52 bits");
  if (low >= high) refuse(fmt::format("low ({}) must be less than high ({})", low, high));
  return {integer ? Distribution::integer : Distribution::uniform, low, high};
}

bool holds_exactly(DType dtype, double value) {
  if (is_floating(dtype)) return true;
  bool exact = value == std::floor(value);
  visit_any(dtype, [&]<class T>(Tag<T>) {
    if constexpr (std::is_integral_v<T>) exact = exact && value >= static_cast<double>(std::numeric_limits<T>::min()) && value < std::ldexp(1.0, std::numeric_limits<T>::digits);
  });
  return exact;
}

}  // namespace

std::unique_ptr<RowArray> synthetic_array(const Value& description, const std::string& path, int64_t samples, const SyntheticDefaults& defaults, uint64_t seed) {
  const auto column = read_described<SyntheticColumn>(description, path);
  const auto refuse = [&](const std::string& message) { fail_at(description.place(), "Y13", fmt::format("{}: {}", path, message)); };
  Recipe recipe = recipe_of(column, description, path);
  std::optional<DType> dtype = defaults.dtype;
  if (column.dtype) {
    dtype = dtype_from_name(*column.dtype);
    if (!dtype) refuse(fmt::format("unknown dtype '{}'; expected a name like float32 or int64", printable(*column.dtype)));
  }
  if (!dtype) dtype = recipe.distribution == Distribution::integer ? DType::i64 : DType::f32;
  const bool fractions = recipe.distribution == Distribution::uniform || recipe.distribution == Distribution::normal;
  if (fractions && !is_floating(*dtype)) refuse(fmt::format("random: {} makes fractions, which {} can't hold; use random: integer", *column.random, name_of(*dtype)));
  if (!fractions && !holds_exactly(*dtype, recipe.low)) refuse(fmt::format("{} is no {}", recipe.low, name_of(*dtype)));
  if (recipe.distribution == Distribution::integer && !holds_exactly(*dtype, recipe.high - 1)) refuse(fmt::format("{} is no {}", recipe.high - 1, name_of(*dtype)));

  Shape shape = {samples};
  const Shape row = column.shape ? Shape(column.shape->begin(), column.shape->end()) : defaults.row;
  for (const int64_t size : row) {
    if (size < 0) refuse(fmt::format("the model's shape {} leaves an axis open; write shape: [...]", text_of(row)));
    shape.push_back(size);
  }
  if (recipe.distribution == Distribution::one_hot) {
    if (shape.size() < 2 || shape.back() < 1) refuse("random: one_hot needs a row of at least one axis; write shape: [CLASSES]");
    recipe.high = static_cast<double>(shape.back());
  }
  return std::make_unique<SyntheticArray>(path, *dtype, shape, recipe, RandomKey{seed, stream_of(path)});
}

}  // namespace lockstep
