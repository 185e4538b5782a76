#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/trainer/row_source.h"
#include "io/data/data.h"
#include "io/data/row_array.h"

namespace lockstep {

/// An array and how the model sees it.
struct BoundColumn {
  RowSource::Column column;  ///< its row has as many elements as the array's
  std::unique_ptr<RowArray> array;
  int64_t classes = 0;  ///< as in DataExpectation
};

/// How a dtype that differs from the model's can be put right; it ends the message of D17.
enum class CastHint { cast_key,    ///< the job has `cast`
                      store_it };  ///< nothing but other data

/// An array as an input of the model. `name` is for notes: "data.train.inputs.x". Throws D12, D17.
BoundColumn bound_input(std::unique_ptr<RowArray> array, const DataExpectation::Input& input, std::optional<DType> cast, CastHint hint, const std::string& name, std::vector<std::string>& notes);

/// Columns of equal length, checked and converted as they are read.
class ColumnSource : public RowSource {
 public:
  /// Throws D01 for no rows, D06 when the lengths differ.
  ColumnSource(std::vector<BoundColumn> columns, std::function<std::string()> fingerprint);

  int64_t rows() const override { return rows_; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const override;
  std::string fingerprint() const override { return fingerprint_(); }

 private:
  /// Room for stored values that are converted; kept, so that a step allocates nothing.
  struct Scratch {
    std::mutex mutex;
    std::vector<std::byte> bytes;
  };

  std::vector<BoundColumn> bound_;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
  std::function<std::string()> fingerprint_;
  int64_t rows_ = 0;
};

}  // namespace lockstep
