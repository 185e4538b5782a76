#include "io/data/formats.h"

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

const std::vector<DataFormat>& data_formats() {
  static const std::vector<DataFormat> formats = {
      hdf5_format(),
      idx_format(),
      npy_format(),
      npz_format(),
  };
  return formats;
}

const DataFormat* data_format(std::string_view name) {
  for (const DataFormat& format : data_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

const DataFormat& recognised_format(const File& file) {
  constexpr size_t enough = 4096;
  const std::vector<std::byte> head = file.head(enough);
  std::string known;
  for (const DataFormat& format : data_formats()) {
    if (format.recognises(head)) return format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  }
  const std::string start(reinterpret_cast<const char*>(head.data()), std::min<size_t>(head.size(), 12));
  throw Error("D01", file.path(), fmt::format("the format cannot be told from the content (it starts with \"{}\"); known: {}", printable(start), known));
}

}  // namespace lockstep
