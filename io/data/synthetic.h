#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/value/fields.h"
#include "core/value/value.h"
#include "io/data/row_array.h"

namespace lockstep {

/// A column whose values are made up: {fill: ones}, {random: integer, low: 0, high: 2}.
struct SyntheticColumn {
  Value fill;
  std::optional<std::string> random;
  std::optional<double> low;
  std::optional<double> high;
  std::optional<double> mean;
  std::optional<double> stddev;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::string> dtype;

  void fields(Fields& fields);

  /// `value` is one of these, not a mapping of names to them.
  static bool describes(const Value& value);
};

/// What a column has that says nothing of shape and dtype. Without a dtype: int64 for random integers, else float32.
struct SyntheticDefaults {
  Shape row;
  std::optional<DType> dtype;
};

/// `path` names the column ("data.train.inputs.keys") and, with the seed, decides its values. Throws Y09 to Y14 for a wrong description.
std::unique_ptr<RowArray> synthetic_array(const Value& description, const std::string& path, int64_t samples, const SyntheticDefaults& defaults, uint64_t seed);

}  // namespace lockstep
