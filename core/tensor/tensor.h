#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"

namespace lockstep {

/// Sizes of the axes, outermost first. Empty for a scalar. Never negative.
using Shape = std::vector<int64_t>;

/// Product of the axes; 1 for a scalar. Throws M02 when it overflows 63 bits.
int64_t elements_of(const Shape& shape);
/// "(32, 784)"; "()" for a scalar; "(3,)" for a vector.
std::string text_of(const Shape& shape);

/// What a tensor looks like.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  int64_t elements() const { return elements_of(shape); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype); }
  bool operator==(const TensorType&) const = default;
  /// "float32 (32, 784)"
  std::string text() const;
};

/// Values of one type, row-major, in memory that copies of the tensor share.
class Tensor {
 public:
  Tensor() = default;
  /// Zeros.
  explicit Tensor(TensorType type);
  template <class T>
  static Tensor of(DType dtype, Shape shape, std::span<const T> values) {
    Tensor tensor({dtype, std::move(shape)});
    std::copy(values.begin(), values.end(), tensor.as<T>().begin());
    return tensor;
  }

  /// False for one without values, as Tensor() makes.
  bool valid() const { return data_ != nullptr; }
  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  int64_t elements() const { return type_.elements(); }
  std::span<std::byte> bytes() { return {data_.get(), type_.bytes()}; }
  std::span<const std::byte> bytes() const { return {data_.get(), type_.bytes()}; }
  /// The values; the caller knows that T is what dtype() says.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements())};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements())};
  }
  /// A private copy.
  Tensor clone() const;

 private:
  TensorType type_;
  std::shared_ptr<std::byte[]> data_;
};

/// Each element converted by value (float to integer truncates, as numpy's astype). Spans of equal counts of elements, aligned for their types, apart.
void convert(DType from, std::span<const std::byte> values, DType to, std::span<std::byte> out);
/// A tensor of another element type, converted so; the same tensor when it has that type already.
Tensor cast(const Tensor& tensor, DType dtype);

/// XXH3-64 of bytes, as 16 hexadecimal digits.
std::string hash_of(std::span<const std::byte> bytes);

}  // namespace lockstep
