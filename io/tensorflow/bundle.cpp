#include "io/tensorflow/bundle.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/tensorflow/crc32c.h"
#include "io/tensorflow/table.h"
#include "messages.pb.h"

namespace lockstep::tensorflow {
namespace {

constexpr uint64_t max_index_bytes = uint64_t{1} << 30;
constexpr int supported_version = 1;
constexpr int max_rank = 8;
constexpr int max_slices = 4096;
constexpr int string_type = 7;

struct NumberType {
  int number;
  const char* name;
  std::optional<DType> dtype;
};

// Numbers of tensorflow/core/framework/types.proto.
constexpr NumberType number_types[] = {{1, "DT_FLOAT", DType::f32}, {2, "DT_DOUBLE", DType::f64}, {3, "DT_INT32", DType::i32}, {4, "DT_UINT8", DType::u8}, {5, "DT_INT16", DType::i16}, {6, "DT_INT8", DType::i8}, {8, "DT_COMPLEX64", {}}, {9, "DT_INT64", DType::i64}, {10, "DT_BOOL", DType::boolean}, {11, "DT_QINT8", {}}, {12, "DT_QUINT8", {}}, {13, "DT_QINT32", {}}, {14, "DT_BFLOAT16", DType::bf16}, {17, "DT_UINT16", DType::u16}, {18, "DT_COMPLEX128", {}}, {19, "DT_HALF", DType::f16}, {20, "DT_RESOURCE", {}}, {21, "DT_VARIANT", {}}, {22, "DT_UINT32", DType::u32}, {23, "DT_UINT64", DType::u64}};

DType dtype_of(const std::string& place, const std::string& key, int number) {
  for (const NumberType& type : number_types) {
    if (type.number != number) continue;
    if (type.dtype) return *type.dtype;
    throw Error("S17", place, fmt::format("'{}': type {} is not supported", printable(key), type.name));
  }
  throw Error("S17", place, fmt::format("'{}': unknown dtype {}", printable(key), number));
}

Shape shape_of(const std::string& place, const std::string& key, const messages::TensorShape& stored) {
  if (stored.unknown_rank()) throw Error("S13", place, fmt::format("'{}': its shape is unknown", printable(key)));
  if (stored.dim_size() > max_rank) throw Error("S13", place, fmt::format("'{}': its shape has {} dimensions; the limit is {}", printable(key), stored.dim_size(), max_rank));
  Shape shape;
  int64_t elements = 1;
  for (const auto& dim : stored.dim()) {
    if (dim.size() < 0) throw Error("S13", place, fmt::format("'{}': its shape has the negative dimension {}", printable(key), dim.size()));
    shape.push_back(dim.size());
    if (__builtin_mul_overflow(elements, dim.size(), &elements)) throw Error("S12", place, fmt::format("'{}': its shape overflows 63 bits", printable(key)));
  }
  return shape;
}

// Ordered code: strings whose byte order is that of the values.

void append_number(std::string& to, uint64_t value) {
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.insert(bytes.begin(), static_cast<char>(value & 0xffu));
  to.push_back(static_cast<char>(bytes.size()));
  to += bytes;
}

void append_text(std::string& to, const std::string& text) {
  for (const char byte : text) {
    to.push_back(byte);
    if (byte == '\0') to.push_back('\xff');
    if (byte == '\xff') to.push_back('\0');
  }
  to += std::string("\0\1", 2);
}

void append_signed_number(std::string& to, int64_t value) {
  // The first bits say how many bytes follow: n bytes hold 7n - 1 bits and the sign.
  static constexpr uint8_t headers[][2] = {{0, 0}, {0x80, 0}, {0xc0, 0}, {0xe0, 0}, {0xf0, 0}, {0xf8, 0}, {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  size_t length = 1;
  while (length < 10 && (magnitude >> (7 * length - 1)) != 0) ++length;
  uint8_t bytes[10];
  std::fill(std::begin(bytes), std::end(bytes), value < 0 ? uint8_t{0xff} : uint8_t{0});
  for (size_t i = 0; i < 8; ++i) bytes[9 - i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  uint8_t* begin = bytes + 10 - length;
  begin[0] ^= headers[length][0];
  if (length > 1) begin[1] ^= headers[length][1];
  to.append(reinterpret_cast<const char*>(begin), length);
}

// Copies the elements of a slice into their places in the whole, axis by axis.
void place_slice(const Shape& whole, const BundleTensor::Slice& slice, size_t element, const std::byte* from, std::byte* to) {
  if (whole.empty()) {
    std::memcpy(to, from, element);
    return;
  }
  const size_t row = static_cast<size_t>(slice.length.back()) * element;
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < whole.size(); ++axis) rows *= slice.length[axis];
  Shape at(whole.size(), 0);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < whole.size(); ++axis) offset = offset * whole[axis] + slice.start[axis] + at[axis];
    std::memcpy(to + static_cast<size_t>(offset) * element, from, row);
    from += row;
    for (size_t axis = whole.size() - 1; axis-- > 0;) {
      if (++at[axis] < slice.length[axis]) break;
      at[axis] = 0;
    }
  }
}

bool overlap(const BundleTensor::Slice& a, const BundleTensor::Slice& b) {
  for (size_t axis = 0; axis < a.start.size(); ++axis) {
    if (a.start[axis] + a.length[axis] <= b.start[axis] || b.start[axis] + b.length[axis] <= a.start[axis]) return false;
  }
  return true;
}

}  // namespace

std::string slice_key(const std::string& name, const Shape& start, const Shape& length) {
  std::string key;
  append_number(key, 0);
  append_text(key, name);
  append_number(key, start.size());
  for (size_t axis = 0; axis < start.size(); ++axis) {
    append_signed_number(key, start[axis]);
    append_signed_number(key, length[axis]);
  }
  return key;
}

Bundle::Bundle(std::string prefix) : prefix_(std::move(prefix)), index_path_(prefix_ + ".index") {
  const auto entries = read_table(index_path_, InputFile(index_path_, "S02").read_all(max_index_bytes));
  const auto found = entries.find("");
  messages::BundleHeader header;
  if (found == entries.end() || !header.ParseFromString(found->second)) throw Error("S08", index_path_, "has no header: not a TensorBundle index");
  if (header.endianness() != 0) throw Error("S08", index_path_, "the checkpoint was written big-endian: not supported");
  if (header.version().min_consumer() > supported_version) {
    throw Error("S08", index_path_, fmt::format("needs reader version {}; this program reads version {}", header.version().min_consumer(), supported_version));
  }
  if (header.num_shards() < 1) throw Error("S08", index_path_, fmt::format("the header says {} shards; at least 1 was expected", header.num_shards()));
  for (int shard = 0; shard < header.num_shards(); ++shard) {
    const std::string path = fmt::format("{}.data-{:05}-of-{:05}", prefix_, shard, header.num_shards());
    if (!std::filesystem::exists(path)) throw Error("S02", index_path_, fmt::format("shard {} of {}, {}, is missing", shard, header.num_shards(), path));
    shards_.emplace_back(path, "S02");
  }
  for (const auto& [key, value] : entries) {
    if (!key.empty()) add(key, value);
  }
  for (auto& [key, tensor] : tensors_) check_slices(key, tensor);
  check_overlaps();
}

void Bundle::add(const std::string& key, const std::string& value) {
  messages::BundleEntry entry;
  if (!entry.ParseFromString(value)) throw Error("S09", index_path_, fmt::format("'{}': its entry is damaged", printable(key)));
  BundleTensor tensor;
  const bool is_string = entry.dtype() == string_type;
  tensor.shape = shape_of(index_path_, key, entry.shape());
  if (!is_string) tensor.dtype = dtype_of(index_path_, key, entry.dtype());
  const int64_t elements = elements_of(tensor.shape);
  int64_t bytes = 0;
  if (tensor.dtype && __builtin_mul_overflow(elements, static_cast<int64_t>(size_of(*tensor.dtype)), &bytes)) {
    throw Error("S12", index_path_, fmt::format("'{}': its shape {} overflows 63 bits of bytes", printable(key), text_of(tensor.shape)));
  }
  if (entry.slices_size() > max_slices) throw Error("S18", index_path_, fmt::format("'{}': has {} slices; the limit is {}", printable(key), entry.slices_size(), max_slices));
  if (entry.slices_size() > 0) {
    for (const auto& slice : entry.slices()) {
      if (static_cast<size_t>(slice.extent_size()) != tensor.shape.size()) throw Error("S18", index_path_, fmt::format("'{}': a slice has {} axes, its shape {}", printable(key), slice.extent_size(), tensor.shape.size()));
      BundleTensor::Slice piece;
      Shape stored_length;
      for (int axis = 0; axis < slice.extent_size(); ++axis) {
        const auto& extent = slice.extent(axis);
        const bool is_full = extent.has_length_case() == messages::TensorSlice::Extent::HAS_LENGTH_NOT_SET;
        piece.start.push_back(extent.start());
        piece.length.push_back(is_full ? tensor.shape[axis] : extent.length());
        stored_length.push_back(is_full ? -1 : extent.length());
      }
      piece.key = slice_key(key, piece.start, stored_length);
      tensor.slices.push_back(std::move(piece));
    }
    tensors_.emplace(key, std::move(tensor));
    return;
  }
  if (entry.shard_id() < 0 || static_cast<size_t>(entry.shard_id()) >= shards_.size()) {
    throw Error("S10", index_path_, fmt::format("'{}': is in shard {}, but there are {} shards, counted from 0", printable(key), entry.shard_id(), shards_.size()));
  }
  const InputFile& shard = shards_[static_cast<size_t>(entry.shard_id())];
  if (entry.offset() < 0 || entry.size() < 0) {
    throw Error("S11", index_path_, fmt::format("'{}': negative offset {} or size {}", printable(key), entry.offset(), entry.size()));
  }
  tensor.shard = static_cast<uint32_t>(entry.shard_id());
  tensor.offset = static_cast<uint64_t>(entry.offset());
  tensor.size = static_cast<uint64_t>(entry.size());
  tensor.crc = entry.crc32c();
  if (tensor.offset > shard.size() || tensor.size > shard.size() - tensor.offset) {
    throw Error("S11", shard.path(), fmt::format("'{}': offset {} and size {} lie beyond the file's end at {} bytes; truncated?", printable(key), tensor.offset, tensor.size, shard.size()));
  }
  if (is_string && static_cast<uint64_t>(elements) > tensor.size) {
    throw Error("S16", index_path_, fmt::format("'{}': {} strings in a size of {} bytes", printable(key), elements, tensor.size));
  }
  if (!is_string && static_cast<uint64_t>(bytes) != tensor.size) {
    throw Error("S12", index_path_, fmt::format("'{}': its size is {} bytes, but the shape {} of {} needs {}", printable(key), tensor.size, text_of(tensor.shape), name_of(*tensor.dtype), bytes));
  }
  // Ordered code of a slice begins with the number 0.
  (key.front() == '\0' ? pieces_ : tensors_).emplace(key, std::move(tensor));
}

void Bundle::check_slices(const std::string& key, BundleTensor& tensor) {
  if (tensor.slices.empty()) return;
  if (!tensor.dtype) throw Error("S18", index_path_, fmt::format("'{}': strings in slices are not supported", printable(key)));
  int64_t covered = 0;
  for (size_t i = 0; i < tensor.slices.size(); ++i) {
    const auto& slice = tensor.slices[i];
    for (size_t axis = 0; axis < slice.start.size(); ++axis) {
      if (slice.start[axis] < 0 || slice.length[axis] < 0 || slice.start[axis] > tensor.shape[axis] || slice.length[axis] > tensor.shape[axis] - slice.start[axis]) {
        throw Error("S18", index_path_, fmt::format("'{}': a slice reaches beyond its shape {}", printable(key), text_of(tensor.shape)));
      }
    }
    const auto piece = pieces_.find(slice.key);
    if (piece == pieces_.end() || piece->second.shape != slice.length || piece->second.dtype != tensor.dtype) {
      throw Error("S18", index_path_, fmt::format("'{}': the slice at {} of shape {} is missing or of another shape or type", printable(key), text_of(slice.start), text_of(slice.length)));
    }
    covered += elements_of(slice.length);
    for (size_t other = 0; other < i; ++other) {
      if (overlap(slice, tensor.slices[other])) throw Error("S18", index_path_, fmt::format("'{}': slices overlap at {}", printable(key), text_of(slice.start)));
    }
  }
  if (covered != elements_of(tensor.shape)) {
    throw Error("S18", index_path_, fmt::format("'{}': {} of {} elements are in no slice", printable(key), elements_of(tensor.shape) - covered, elements_of(tensor.shape)));
  }
}

void Bundle::check_overlaps() const {
  std::vector<std::pair<const std::string*, const BundleTensor*>> all;
  for (const auto* entries : {&tensors_, &pieces_}) {
    for (const auto& [key, tensor] : *entries) {
      if (tensor.slices.empty() && tensor.size > 0) all.emplace_back(&key, &tensor);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return std::pair(a.second->shard, a.second->offset) < std::pair(b.second->shard, b.second->offset); });
  for (size_t i = 1; i < all.size(); ++i) {
    const BundleTensor& before = *all[i - 1].second;
    const BundleTensor& after = *all[i].second;
    if (before.shard == after.shard && before.offset + before.size > after.offset) {
      throw Error("S14", index_path_, fmt::format("'{}' and '{}' share bytes from {} on", printable(*all[i - 1].first), printable(*all[i].first), after.offset));
    }
  }
}

void Bundle::read_piece(const std::string& key, const BundleTensor& tensor, std::span<std::byte> into) const {
  const InputFile& shard = shards_[tensor.shard];
  if (into.size() != tensor.size) throw Error("X02", shard.path(), fmt::format("'{}': {} bytes meet a buffer of {}", printable(key), tensor.size, into.size()));
  shard.read_at(tensor.offset, into);
  const uint32_t computed = masked(crc32c(into));
  if (computed != tensor.crc) {
    throw Error("S15", shard.path(), fmt::format("'{}' is damaged (its CRC is {}, stored is {})", printable(key), computed, tensor.crc));
  }
}

void Bundle::read(const std::string& key, std::span<std::byte> into) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end() || !found->second.dtype) throw Error("X02", index_path_, fmt::format("'{}' is no tensor of numbers here", printable(key)));
  const BundleTensor& tensor = found->second;
  if (tensor.slices.empty()) return read_piece(key, tensor, into);
  const size_t element = size_of(*tensor.dtype);
  if (into.size() != static_cast<size_t>(elements_of(tensor.shape)) * element) throw Error("X02", index_path_, fmt::format("'{}': a buffer of {} bytes for {}", printable(key), into.size(), text_of(tensor.shape)));
  for (const auto& slice : tensor.slices) {
    const BundleTensor& piece = pieces_.at(slice.key);
    std::vector<std::byte> bytes(piece.size);
    read_piece(key, piece, bytes);
    if (!bytes.empty()) place_slice(tensor.shape, slice, element, bytes.data(), into.data());
  }
}

std::string Bundle::read_string(const std::string& key) const {
  const auto found = tensors_.find(key);
  if (found == tensors_.end() || found->second.dtype || !found->second.shape.empty()) throw Error("S16", index_path_, fmt::format("'{}' is not one string", printable(key)));
  const BundleTensor& tensor = found->second;
  const InputFile& shard = shards_[tensor.shard];
  std::string bytes(tensor.size, '\0');
  shard.read_at(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  std::string_view rest = bytes;
  const auto length = take_varint(rest);
  if (!length || rest.size() < 4 || rest.size() - 4 != *length) throw Error("S16", shard.path(), fmt::format("'{}': its length contradicts its size", printable(key)));
  // The checksum covers the length as a number of fixed width, then the length's own checksum, then the text.
  const auto bytes_of_length = std::as_bytes(std::span(&*length, 1)).first(*length > std::numeric_limits<uint32_t>::max() ? 8 : 4);
  uint32_t crc = crc32c(bytes_of_length);
  uint32_t stored = 0;
  std::memcpy(&stored, rest.data(), 4);
  const bool is_length_good = stored == masked(crc);
  crc = crc32c(std::as_bytes(std::span(rest)), crc);
  if (!is_length_good || masked(crc) != tensor.crc) {
    throw Error("S15", shard.path(), fmt::format("'{}' is damaged (its CRC is {}, stored is {})", printable(key), masked(crc), tensor.crc));
  }
  return std::string(rest.substr(4));
}

}  // namespace lockstep::tensorflow
