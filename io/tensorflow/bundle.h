#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "io/model_file/input_file.h"

namespace lockstep::tensorflow {

/// One tensor of a bundle, whole or in slices, its place in the files checked.
struct BundleTensor {
  Shape shape;
  std::optional<DType> dtype;  ///< nothing for strings
  uint32_t shard = 0;
  uint64_t offset = 0;  ///< bytes in the shard
  uint64_t size = 0;    ///< bytes
  uint32_t crc = 0;     ///< masked CRC-32C of the bytes
  /// Where the tensor is stored in pieces: the start and length of each axis, and the entry that holds them.
  struct Slice {
    Shape start;
    Shape length;
    std::string key;
  };
  std::vector<Slice> slices;
};

/// A TensorBundle: `<prefix>.index`, a table of names and places, and `<prefix>.data-SSSSS-of-NNNNN`, the bytes. What TensorFlow calls a checkpoint,
/// and a SavedModel's `variables/variables`.
///
///   key ""     BundleHeader: number of shards, byte order, version
///   other keys BundleEntry: type, shape, shard, offset, size, masked CRC-32C of the bytes, slices (then the pieces have keys in ordered code)
/// Numbers are little-endian, row-major. Strings: a varint of length for each, the masked CRC-32C of the lengths as u32 (u64 above 32 bits), the bytes.
/// Sources: TensorFlow, core/util/tensor_bundle/tensor_bundle.cc and core/protobuf/tensor_bundle.proto.
class Bundle {
 public:
  /// Opens and checks everything but the tensors' bytes. Throws Error S02 to S18.
  explicit Bundle(std::string prefix);

  /// By key: names, or paths of the object graph. Slices aren't in it, only the tensors that they make.
  const std::map<std::string, BundleTensor>& tensors() const { return tensors_; }
  /// "ckpt.index", for places.
  const std::string& index_path() const { return index_path_; }

  /// The values of a tensor of numbers, little-endian; `into` has its bytes. Throws S15 when their checksum is wrong.
  void read(const std::string& key, std::span<std::byte> into) const;
  /// The values of a scalar string. Throws S15, S16.
  std::string read_string(const std::string& key) const;

 private:
  void add(const std::string& key, const std::string& value);
  void check_slices(const std::string& key, BundleTensor& tensor);
  void check_overlaps() const;
  void read_piece(const std::string& key, const BundleTensor& tensor, std::span<std::byte> into) const;

  std::string prefix_;
  std::string index_path_;
  std::vector<InputFile> shards_;
  std::map<std::string, BundleTensor> tensors_;
  std::map<std::string, BundleTensor> pieces_;
};

/// The key of a slice's entry: ordered code of 0, the tensor's name, the number of axes, and start and length of each (-1: all of the axis).
std::string slice_key(const std::string& name, const Shape& start, const Shape& length);

}  // namespace lockstep::tensorflow
