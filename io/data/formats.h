#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/row_array.h"

namespace lockstep {

/// A format of data files.
struct DataFormat {
  enum class Holds { one_array,     ///< a file is a column
                     named_arrays,  ///< a file has a column under each of several names
  };

  std::string_view name;  ///< of `format:` in a job
  Holds holds = Holds::one_array;
  /// Told by the first 4 KiB.
  bool (*recognises)(std::span<const std::byte> head) = nullptr;
  /// `array` names it in the file; empty where a file is one array. Throws Error with file and array as place.
  std::unique_ptr<RowArray> (*open)(const std::shared_ptr<const File>& file, const std::string& array) = nullptr;
};

/// Every format; a new one is a file beside this and a line in formats.cpp.
const std::vector<DataFormat>& data_formats();
/// The format of that name, or null.
const DataFormat* data_format(std::string_view name);
/// Told by content; throws D01 listing the formats that are known.
const DataFormat& recognised_format(const File& file);

DataFormat idx_format();
DataFormat hdf5_format();
DataFormat npy_format();
DataFormat npz_format();

/// Whether the path inside an HDF5 file leads to a data set, not to a group. Throws D01 when it leads nowhere, naming what is there.
bool is_hdf5_dataset(const File& file, const std::string& path);

}  // namespace lockstep
