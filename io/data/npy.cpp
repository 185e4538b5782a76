#include "io/npy/npy.h"

#include <cstring>

#include "io/data/formats.h"
#include "io/npy/npz.h"

namespace lockstep {

namespace {

bool begins_with(std::span<const std::byte> head, std::string_view magic) { return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0; }

std::unique_ptr<RowArray> open_npy(const std::shared_ptr<const File>& file, const std::string&) {
  uint64_t offset = 0;
  const NextBytes next = [&](std::span<std::byte> out) {
    file->read_at(offset, out);
    offset += out.size();
  };
  const NpyHeader header = read_npy_header(next, file->size(), file->path());
  if (header.fortran_order) return std::make_unique<MemoryArray>(file->path(), read_npy_values(next, header));
  const auto order = header.big_endian ? StoredArray::ByteOrder::big : StoredArray::ByteOrder::little;
  return std::make_unique<StoredArray>(file, file->path(), header.type.dtype, header.type.shape, header.values_at, order);
}

std::unique_ptr<RowArray> open_npz(const std::shared_ptr<const File>& file, const std::string& array) {
  return std::make_unique<MemoryArray>(file->path() + ": " + array, read_npz(file->path(), array));
}

}  // namespace

DataFormat npy_format() {
  return {"npy", DataFormat::Holds::one_array, [](std::span<const std::byte> head) { return begins_with(head, "\x93NUMPY"); }, open_npy};
}

DataFormat npz_format() {
  return {"npz", DataFormat::Holds::named_arrays, [](std::span<const std::byte> head) { return begins_with(head, "PK\x03\x04"); }, open_npz};
}

}  // namespace lockstep
