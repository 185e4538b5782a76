#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The rows of a data set, column by column. Reading is safe from several threads.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// What a column is for: an input of the model, a target of an output, a weight of the samples.
  enum class Role { input, target, sample_weight };
  struct Column {
    Role role = Role::input;
    std::string name;  ///< the input's or output's name; for a weight that holds for every output, empty
    TensorType row;    ///< one row: without the batch axis
  };

  virtual int64_t rows() const = 0;
  virtual const std::vector<Column>& columns() const = 0;
  /// The given rows of a column, in that order, into `out` (rows.size() times the bytes of one row).
  virtual void read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const = 0;
  /// Changes when the content changes: sizes and a hash of each file (synthetic: of its description). Same on every host that has the same data.
  virtual std::string fingerprint() const = 0;
};

}  // namespace lockstep
