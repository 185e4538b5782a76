#include "io/data/column_source.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

bool fits(const Shape& row, const Shape& expected) {
  return std::ranges::equal(row, expected, [](int64_t size, int64_t wanted) { return wanted == -1 || size == wanted; });
}

/// The stored row as the model sees it: itself, or with a last axis of 1 more or less.
std::optional<Shape> fitted(Shape row, const Shape& expected) {
  if (fits(row, expected)) return row;
  if (!row.empty() && row.back() == 1 && fits(Shape(row.begin(), row.end() - 1), expected)) return Shape(row.begin(), row.end() - 1);
  row.push_back(1);
  if (fits(row, expected)) return row;
  return std::nullopt;
}

std::string shape_hint(const Shape& row, const Shape& expected) {
  const bool known = std::ranges::none_of(expected, [](int64_t size) { return size == -1; });
  if (!known || elements_of(row) != elements_of(expected)) return "check which array belongs to this input";
  if (expected.size() == 1) return fmt::format("declare the input with shape [{}] and add Flatten", fmt::join(row, ", "));
  return fmt::format("declare the input with shape [{}] and add {{type: Reshape, target_shape: [{}]}}", fmt::join(row, ", "), fmt::join(expected, ", "));
}

/// The bits of the exponent; all set, they mean infinity or no number.
constexpr uint16_t exponent_of(Float16) { return 0x7c00; }
constexpr uint16_t exponent_of(BFloat16) { return 0x7f80; }
constexpr uint32_t exponent_of(float) { return 0x7f800000; }
constexpr uint64_t exponent_of(double) { return 0x7ff0000000000000; }

template <class T>
bool all_finite(std::span<const std::byte> bytes) {
  const auto exponent = exponent_of(T{});
  using Bits = std::remove_const_t<decltype(exponent)>;
  const Bits* values = reinterpret_cast<const Bits*>(bytes.data());
  Bits found = 0;
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) found |= static_cast<Bits>((values[i] & exponent) == exponent);
  return found == 0;
}

bool all_finite(DType dtype, std::span<const std::byte> bytes) {
  bool finite = true;
  visit_floating(dtype, [&]<class T>(Tag<T>) { finite = all_finite<T>(bytes); });
  return finite;
}

void check_finite(const std::string& place, const TensorType& row, std::span<const int64_t> rows, std::span<const std::byte> values) {
  if (all_finite(row.dtype, values)) return;
  std::set<int64_t> bad;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!all_finite(row.dtype, values.subspan(i * row.bytes(), row.bytes()))) bad.insert(rows[i]);
  }
  throw Error("D04", place, fmt::format("{} of the {} rows just read contain values that are not finite as {}, first at row {}; remove or replace them", bad.size(), rows.size(), name_of(row.dtype), *bad.begin()));
}

void check_labels(const BoundColumn& bound, std::span<const int64_t> rows, std::span<const std::byte> values) {
  const size_t elements = static_cast<size_t>(bound.column.row.elements());
  visit_any(bound.column.row.dtype, [&]<class T>(Tag<T>) {
    const T* labels = reinterpret_cast<const T*>(values.data());
    for (size_t i = 0; i < rows.size() * elements; ++i) {
      const double label = static_cast<double>(labels[i]);
      if (label >= 0 && label < static_cast<double>(bound.classes)) continue;
      throw Error("D05", bound.array->place(), fmt::format("label {} at row {}; the model has {} classes (0 to {})", label, rows[i / elements], bound.classes, bound.classes - 1));
    }
  });
}

}  // namespace

BoundColumn bound_input(std::unique_ptr<RowArray> array, const DataExpectation::Input& input, std::optional<DType> cast, CastHint hint, const std::string& name, std::vector<std::string>& notes) {
  const TensorType& stored = array->row();
  const std::optional<Shape> row = fitted(stored.shape, input.row);
  if (!row) throw Error("D12", array->place(), fmt::format("samples are {}, model input '{}' is {}; {}", text_of(stored.shape), input.name, text_of(input.row), shape_hint(stored.shape, input.row)));
  const bool widths = is_floating(stored.dtype) && is_floating(input.dtype);
  if (stored.dtype != input.dtype && widths) notes.push_back(fmt::format("{}: {} in {} is read as {}", name, name_of(stored.dtype), array->place(), name_of(input.dtype)));
  if (stored.dtype != input.dtype && !widths && !cast) {
    const std::string way_out = hint == CastHint::cast_key ? fmt::format("add cast: {{{}: {}}}", input.name, name_of(input.dtype)) : fmt::format("store it as {}", name_of(input.dtype));
    throw Error("D17", array->place(), fmt::format("{}: data is {}, input is {}; {}", input.name, name_of(stored.dtype), name_of(input.dtype), way_out));
  }
  return {{RowSource::Role::input, input.name, {input.dtype, *row}}, std::move(array), 0};
}

ColumnSource::ColumnSource(std::vector<BoundColumn> columns, std::function<std::string()> fingerprint) : bound_(std::move(columns)), fingerprint_(std::move(fingerprint)) {
  Problems problems;
  const RowArray& first = *bound_.front().array;
  rows_ = first.rows();
  if (rows_ == 0) throw Error("D01", first.place(), "has no rows");
  for (const BoundColumn& bound : bound_) {
    if (bound.array->rows() != rows_) problems.add({"D06", bound.array->place(), fmt::format("{} rows, but {} has {}; every column needs a value for every sample", bound.array->rows(), first.place(), rows_), {}});
    columns_.push_back(bound.column);
    scratch_.push_back(std::make_unique<Scratch>());
  }
  problems.raise();
}

void ColumnSource::read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const {
  const BoundColumn& bound = bound_.at(column);
  const size_t bytes = bound.column.row.bytes();
  if (out.size() != rows.size() * bytes) throw Error("X02", bound.array->place(), fmt::format("{} rows of {} bytes meet a buffer of {}", rows.size(), bytes, out.size()));
  for (const int64_t row : rows) {
    if (row < 0 || row >= rows_) throw Error("X02", bound.array->place(), fmt::format("row {} of {} was asked for", row, rows_));
  }
  const DType stored = bound.array->row().dtype;
  if (stored == bound.column.row.dtype) {
    bound.array->read(rows, out);
  } else {
    Scratch& scratch = *scratch_[column];
    const std::lock_guard lock(scratch.mutex);
    scratch.bytes.resize(std::max(scratch.bytes.size(), rows.size() * bound.array->row().bytes()));
    const std::span<std::byte> values = std::span(scratch.bytes).first(rows.size() * bound.array->row().bytes());
    bound.array->read(rows, values);
    // Before the conversion: an integer made of no number is any number.
    if (!is_floating(bound.column.row.dtype)) check_finite(bound.array->place(), bound.array->row(), rows, values);
    convert(stored, values, bound.column.row.dtype, out);
  }
  check_finite(bound.array->place(), bound.column.row, rows, out);
  if (bound.classes > 0) check_labels(bound, rows, out);
}

}  // namespace lockstep
