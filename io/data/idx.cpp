#include <array>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/data/formats.h"
#include "io/data/gzip.h"

// IDX, the format of MNIST and its kin (source: yann.lecun.com/exdb/mnist), often as .gz:
//   bytes       content
//   2           zero
//   1           element type: 8 uint8, 9 int8, 0xB int16, 0xC int32, 0xD float32, 0xE float64
//   1           count of axes
//   4 an axis   its size, big-endian
//   ...         values, row-major, big-endian
namespace lockstep {

namespace {

// Below this size unpacking costs less than a thread, and a damaged file is told at once.
constexpr size_t unpacked_at_once = size_t{1} << 20;

std::optional<DType> element_type(std::byte code) {
  switch (static_cast<int>(code)) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0B:
      return DType::i16;
    case 0x0C:
      return DType::i32;
    case 0x0D:
      return DType::f32;
    case 0x0E:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

uint32_t big_endian_at(std::span<const std::byte> bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint32_t>(bytes[offset + i]);
  return value;
}

struct Header {
  TensorType type;
  size_t bytes = 0;  ///< of the header
};

Header parsed(std::span<const std::byte> head, const std::string& place) {
  if (head.size() < 4) throw Error("D10", place, fmt::format("{} bytes are no IDX file", head.size()));
  const uint32_t magic = big_endian_at(head, 0);
  const std::optional<DType> dtype = element_type(head[2]);
  const size_t axes = magic & 0xff;
  if (is_gzip(head)) throw Error("D10", place, fmt::format("magic 0x{:08x}: what was unpacked is still gzipped; unpack it once", magic));
  if (magic >> 16 != 0 || !dtype || axes == 0) throw Error("D10", place, fmt::format("magic 0x{:08x} is not IDX's: expected 0x0000, an element type (08 uint8, 09 int8, 0b int16, 0c int32, 0d float32, 0e float64) and a count of axes", magic));
  Header header{{*dtype, {}}, 4 + 4 * axes};
  if (head.size() < header.bytes) throw Error("D10", place, fmt::format("ends within its header of {} bytes", header.bytes));
  for (size_t i = 0; i < axes; ++i) header.type.shape.push_back(big_endian_at(head, 4 + 4 * i));
  return header;
}

constexpr size_t longest_header = 4 + 4 * 255;

/// Of header and values; nothing beyond 2^64.
std::optional<uint64_t> total_bytes(const Header& header) {
  uint64_t bytes = size_of(header.type.dtype);
  for (const int64_t axis : header.type.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(axis), &bytes)) return std::nullopt;
  }
  return __builtin_add_overflow(bytes, header.bytes, &bytes) ? std::nullopt : std::optional(bytes);
}

void check_size(const Header& header, uint64_t bytes, const std::string& place) {
  const std::optional<uint64_t> expected = total_bytes(header);
  if (expected == bytes) return;
  throw Error("D10", place, fmt::format("the header says {}: {} bytes in all; there are {}", header.type.text(), expected ? fmt::format("{}", *expected) : "more than 2^64", bytes));
}

/// The unpacked values of a .gz file. They are unpacked beside the caller, since nobody needs them before the first batch.
class UnpackedArray : public RowArray {
 public:
  UnpackedArray(const std::shared_ptr<const File>& file, const Header& header)
      : RowArray(file->path(), header.type.dtype, header.type.shape), size_(header.bytes + header.type.bytes()), header_(header.bytes), bytes_(std::make_unique_for_overwrite<std::byte[]>(size_)) {
    // A file whose end contradicts its header is bad, or beyond 4 GiB: better known now.
    const bool suspect = gzip_stated_size(*file) != static_cast<uint32_t>(size_);
    const auto policy = suspect || size_ < unpacked_at_once ? std::launch::deferred : std::launch::async;
    ready_ = std::async(policy, [this, file, header] { unpack(*file, header); }).share();
    if (policy == std::launch::deferred) ready_.get();
  }
  UnpackedArray(const UnpackedArray&) = delete;
  ~UnpackedArray() override { ready_.wait(); }

  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override {
    ready_.get();
    copy_rows(std::span(bytes_.get(), size_).subspan(header_), row().bytes(), rows, out);
  }

 private:
  void unpack(const File& file, const Header& header) {
    if (!unpack_whole(file, {bytes_.get(), size_})) {
      Gunzip gunzip(file);
      uint64_t count = gunzip.read({bytes_.get(), size_});
      std::array<std::byte, 4096> beyond;
      // To the very end, where the checksum is.
      while (const size_t more = gunzip.read(beyond)) count += more;
      check_size(header, count, file.path());
    }
    if (size_of(header.type.dtype) > 1) reverse_byte_order(std::span(bytes_.get(), size_).subspan(header_), size_of(header.type.dtype));
  }

  size_t size_;
  size_t header_;
  std::unique_ptr<std::byte[]> bytes_;
  std::shared_future<void> ready_;
};

std::unique_ptr<RowArray> open_idx(const std::shared_ptr<const File>& file, const std::string&) {
  std::vector<std::byte> head = file->head(longest_header);
  const bool packed = is_gzip(head);
  if (packed) {
    head.resize(longest_header);
    head.resize(Gunzip(*file).read(head));
  }
  const Header header = parsed(head, file->path());
  if (packed) {
    // Deflate expands at most 1032:1: a header that claims more is wrong, and nothing is allocated for it.
    const std::optional<uint64_t> claimed = total_bytes(header);
    if (!claimed || *claimed / 1032 > file->size()) throw Error("D10", file->path(), fmt::format("the header says {}, more than {} packed bytes can hold", header.type.text(), file->size()));
    return std::make_unique<UnpackedArray>(file, header);
  }
  check_size(header, file->size(), file->path());
  return std::make_unique<StoredArray>(file, file->path(), header.type.dtype, header.type.shape, header.bytes, StoredArray::ByteOrder::big);
}

bool is_idx(std::span<const std::byte> head) {
  return is_gzip(head) || (head.size() >= 4 && head[0] == std::byte{0} && head[1] == std::byte{0} && element_type(head[2]) && head[3] != std::byte{0});
}

}  // namespace

DataFormat idx_format() { return {"idx", DataFormat::Holds::one_array, is_idx, open_idx}; }

}  // namespace lockstep
