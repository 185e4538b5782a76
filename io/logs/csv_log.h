#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/logs/append_file.h"
#include "io/logs/number_text.h"

namespace lockstep {

/// metrics.csv and epochs.csv: a header, then rows whose first column is a step or an epoch that grows. Equal rows are equal bytes.
/// A row allocates nothing after the first ones.
class CsvLog {
 public:
  /// Goes on with the file where there is one. Throws W31 when its header is another. Cut the file back first where a run resumes.
  CsvLog(const std::string& path, const std::vector<std::string>& columns);

  /// One cell a column; `std::monostate` is an empty one. Throws X03 when their number is another.
  void append(std::span<const Cell> row);
  void sync() { file_.sync(); }
  /// The reason while rows wait to be written; they are tried again with each row.
  std::optional<std::string> failure() const { return file_.failure(); }

 private:
  AppendFile file_;
  size_t columns_;
  std::string line_;
};

/// Removes the rows whose first column is above `last`, and a row that was cut short; the file is then as it was after `last`. Returns how many rows went:
/// more than none is to be told (C09). Throws W10, W30.
int64_t cut_back_csv(const std::string& path, int64_t last);

}  // namespace lockstep
