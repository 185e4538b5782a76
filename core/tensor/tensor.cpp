#include "core/tensor/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

struct DTypeFacts {
  size_t size;
  std::string_view name;
};

constexpr std::array<DTypeFacts, 13> facts = {{{1, "bool"}, {1, "uint8"}, {2, "uint16"}, {4, "uint32"}, {8, "uint64"}, {1, "int8"}, {2, "int16"}, {4, "int32"}, {8, "int64"}, {2, "float16"}, {2, "bfloat16"}, {4, "float32"}, {8, "float64"}}};

}  // namespace

size_t size_of(DType dtype) { return facts[static_cast<size_t>(dtype)].size; }
std::string_view name_of(DType dtype) { return facts[static_cast<size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_floating(DType dtype) { return dtype >= DType::f16; }
bool is_integer(DType dtype) { return dtype >= DType::u8 && dtype <= DType::i64; }

int64_t elements_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) throw Error("M02", "", fmt::format("shape {} overflows 63 bits", text_of(shape)));
  }
  return count;
}

std::string text_of(const Shape& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

std::string TensorType::text() const { return fmt::format("{} {}", name_of(dtype), text_of(shape)); }

Tensor::Tensor(TensorType type) : type_(std::move(type)) {
  constexpr size_t alignment = 64;  // a cache line, and the widest vector register
  const size_t size = std::max<size_t>(type_.bytes(), 1);
  auto* memory = static_cast<std::byte*>(::operator new(size, std::align_val_t{alignment}));
  std::memset(memory, 0, size);
  data_ = std::shared_ptr<std::byte[]>(memory, [](std::byte* p) { ::operator delete(p, std::align_val_t{alignment}); });
}

Tensor Tensor::clone() const {
  Tensor copy(type_);
  std::copy_n(data_.get(), type_.bytes(), copy.data_.get());
  return copy;
}

namespace {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

void convert(DType from, std::span<const std::byte> values, DType to, std::span<std::byte> out) {
  visit_any(from, [&]<class From>(Tag<From>) {
    visit_any(to, [&]<class To>(Tag<To>) {
      const From* first = reinterpret_cast<const From*>(values.data());
      std::transform(first, first + values.size() / sizeof(From), reinterpret_cast<To*>(out.data()), [](From value) { return converted<To>(value); });
    });
  });
}

Tensor cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result({dtype, tensor.shape()});
  convert(tensor.dtype(), tensor.bytes(), dtype, result.bytes());
  return result;
}

std::string hash_of(std::span<const std::byte> bytes) { return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size())); }

}  // namespace lockstep
