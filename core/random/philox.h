#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"

namespace lockstep {

/// 128 random bits.
struct RandomBits {
  uint32_t word[4];

  /// Words 0 and 1, or 2 and 3, as one number; the lower word first.
  LOCKSTEP_HD uint64_t half(int index) const { return word[2 * index] | static_cast<uint64_t>(word[2 * index + 1]) << 32; }
  bool operator==(const RandomBits&) const = default;
};

/// Philox4x32-10: a keyed bijection of 128-bit counters; its results are the random bits.
/// Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
LOCKSTEP_HD inline RandomBits philox(RandomBits counter, uint32_t key0, uint32_t key1) {
  uint32_t* x = counter.word;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * x[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * x[2];
    x[0] = static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0;
    x[1] = static_cast<uint32_t>(product1);
    x[2] = static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1;
    x[3] = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// A bijection of 64 bits in which every bit of the result depends on every bit of `x`: splitmix64's finaliser.
LOCKSTEP_HD constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Names an endless table of random bits, addressed by two numbers: (row, block). Nothing advances; equal addresses give equal bits on every machine.
///   dropout: RandomKey{seed, stream_of(layer_path)}.with(step).with(call), then uniform_f32_at(key, row, element)
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;

  /// The same seed, another table for each value; the order of several values matters.
  LOCKSTEP_HD RandomKey with(uint64_t value) const { return {seed, mixed(stream + 0x9E3779B97F4A7C15u) + mixed(value)}; }
};

/// The stream of a name, such as a layer's path: a hash of its bytes.
uint64_t stream_of(std::string_view name);

LOCKSTEP_HD inline RandomBits random_bits(RandomKey key, uint64_t row, uint64_t block) {
  const uint64_t folded = key.seed ^ mixed(key.stream);
  const RandomBits counter{{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32)}};
  return philox(counter, static_cast<uint32_t>(folded), static_cast<uint32_t>(folded >> 32));
}

/// Multiples of 2^-24 in [0, 1).
LOCKSTEP_HD inline float uniform_f32(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
/// Multiples of 2^-53 in [0, 1).
LOCKSTEP_HD inline double uniform_f64(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

struct NormalPair {
  double first;
  double second;
};

/// Two independent values of the standard normal distribution, by Box and Muller.
LOCKSTEP_HD inline NormalPair normal_pair(RandomBits bits) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_f64(bits.half(0))));  // 1 - u is in (0, 1]: log stays finite
  const double angle = 6.283185307179586476925 * uniform_f64(bits.half(1));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// One element of a row of the table; a block of bits holds four f32, two f64 or two normal values. Kernels that walk a row take a block at a time.
LOCKSTEP_HD inline float uniform_f32_at(RandomKey key, uint64_t row, uint64_t element) {
  return uniform_f32(random_bits(key, row, element / 4).word[element % 4]);
}
LOCKSTEP_HD inline double uniform_f64_at(RandomKey key, uint64_t row, uint64_t element) {
  return uniform_f64(random_bits(key, row, element / 2).half(static_cast<int>(element % 2)));
}
LOCKSTEP_HD inline double normal_at(RandomKey key, uint64_t row, uint64_t element) {
  const NormalPair pair = normal_pair(random_bits(key, row, element / 2));
  return element % 2 == 0 ? pair.first : pair.second;
}
/// An integer in [low, high); high - low is at least 1 and at most 2^53.
LOCKSTEP_HD inline int64_t integer_at(RandomKey key, uint64_t row, uint64_t element, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(uniform_f64_at(key, row, element) * static_cast<double>(high - low));
}

}  // namespace lockstep
