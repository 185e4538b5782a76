#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace lockstep {

#if defined(__CUDACC__)
#define LOCKSTEP_HD __host__ __device__
#else
#define LOCKSTEP_HD
#endif

/// Element types of tensors, named as in Keras.
enum class DType : uint8_t { boolean, u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64 };

size_t size_of(DType dtype);
/// "float32", "int64", "bool": Keras's and numpy's names.
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
bool is_floating(DType dtype);
bool is_integer(DType dtype);

/// bfloat16: the upper half of a float32. Arithmetic widens.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; a NaN stays one.
  LOCKSTEP_HD explicit BFloat16(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    bits = (x & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>((x >> 16) | 0x40u) : static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
  LOCKSTEP_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// IEEE 754 binary16. Arithmetic widens.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  /// Rounds to nearest, ties to even; overflows to infinity; a NaN stays one.
  LOCKSTEP_HD explicit Float16(float value) {
    const uint32_t x = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      bits = static_cast<uint16_t>(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {
      bits = static_cast<uint16_t>(sign | 0x7c00u);
    } else if (magnitude >= 0x38800000u) {
      const uint32_t rebased = magnitude - 0x38000000u;
      bits = static_cast<uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
    } else if (magnitude >= 0x33000000u) {
      const uint32_t shift = 126u - (magnitude >> 23);
      const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
      const uint32_t half = (1u << (shift - 1u));
      const uint32_t rounded = (mantissa + half - 1u + ((mantissa >> shift) & 1u)) >> shift;
      bits = static_cast<uint16_t>(sign | rounded);
    } else {
      bits = static_cast<uint16_t>(sign);
    }
  }
  LOCKSTEP_HD operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    // Subnormal: mantissa * 2^-24, exact in f32.
    const float scaled = static_cast<float>(mantissa) * std::bit_cast<float>(0x33800000u);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
  }
};

template <class T>
struct Tag {
  using type = T;
};

/// f32 computes in f32, f64 in f64, the half types in f32.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls `visit(Tag<T>{})` with the C++ type of a floating dtype; visit is not called for others, and false comes back.
template <class Visitor>
bool visit_floating(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::f32: visit(Tag<float>{}); return true;
    case DType::f64: visit(Tag<double>{}); return true;
    case DType::f16: visit(Tag<Float16>{}); return true;
    case DType::bf16: visit(Tag<BFloat16>{}); return true;
    default: return false;
  }
}

/// As visit_floating, for every dtype.
template <class Visitor>
void visit_any(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::boolean: visit(Tag<bool>{}); return;
    case DType::u8: visit(Tag<uint8_t>{}); return;
    case DType::u16: visit(Tag<uint16_t>{}); return;
    case DType::u32: visit(Tag<uint32_t>{}); return;
    case DType::u64: visit(Tag<uint64_t>{}); return;
    case DType::i8: visit(Tag<int8_t>{}); return;
    case DType::i16: visit(Tag<int16_t>{}); return;
    case DType::i32: visit(Tag<int32_t>{}); return;
    case DType::i64: visit(Tag<int64_t>{}); return;
    default: visit_floating(dtype, visit);
  }
}

}  // namespace lockstep
