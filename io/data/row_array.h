#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "io/data/file.h"

namespace lockstep {

/// An array of a data file; its first axis counts the rows. Reading is safe from several threads.
class RowArray {
 public:
  virtual ~RowArray() = default;

  /// For messages: "train.h5: /data/x".
  const std::string& place() const { return place_; }
  int64_t rows() const { return rows_; }
  /// One row as it is stored, in the machine's byte order.
  const TensorType& row() const { return row_; }
  /// The given rows in that order; each is in [0, rows()).
  virtual void read(std::span<const int64_t> rows, std::span<std::byte> out) const = 0;

 protected:
  /// Throws D12 for an array without axes.
  RowArray(std::string place, DType dtype, const Shape& shape);

 private:
  std::string place_;
  int64_t rows_;
  TensorType row_;
};

/// In memory.
class MemoryArray : public RowArray {
 public:
  MemoryArray(std::string place, Tensor values);
  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override;

 private:
  Tensor values_;
};

/// In a file, its bytes one after the other, read when they are asked for.
class StoredArray : public RowArray {
 public:
  enum class ByteOrder { little,
                         big };
  /// The caller knows that the file has all its bytes from `offset`.
  StoredArray(std::shared_ptr<const File> file, std::string place, DType dtype, const Shape& shape, uint64_t offset, ByteOrder order);
  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override;

 private:
  std::shared_ptr<const File> file_;
  uint64_t offset_;
  ByteOrder order_;
};

/// Several arrays, one after the other; at least one. Throws D12 when their rows differ in type.
class ConcatenatedArray : public RowArray {
 public:
  explicit ConcatenatedArray(std::vector<std::unique_ptr<RowArray>> parts);
  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override;

 private:
  std::vector<std::unique_ptr<RowArray>> parts_;
  std::vector<int64_t> ends_;  ///< the first row behind each part
};

/// Between big-endian and the machine's order, in place.
void reverse_byte_order(std::span<std::byte> values, size_t element);
/// Gathers rows of `size` bytes from memory.
void copy_rows(std::span<const std::byte> values, size_t size, std::span<const int64_t> rows, std::span<std::byte> out);

}  // namespace lockstep
