#include "core/random/permutation.h"

#include <bit>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/random/philox.h"

namespace lockstep {

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size) {
  const int bits = size > 1 ? std::bit_width(size - 1) : 0;
  const int left_bits = bits / 2;
  right_bits_ = bits - left_bits;
  right_mask_ = (uint64_t{1} << right_bits_) - 1;
  left_mask_ = (uint64_t{1} << left_bits) - 1;
  const RandomKey key = RandomKey{seed, stream_of("sample order")}.with(epoch);
  for (size_t i = 0; i < rounds; ++i) round_keys_[i] = random_bits(key, 0, i / 2).half(static_cast<int>(i % 2));
}

// A Feistel network over the smallest power of two that holds the size; a result outside is sent through again until it falls inside, which takes fewer
// than two passes on average and keeps the map a bijection of [0, size).
uint64_t Permutation::operator()(uint64_t index) const {
  if (index >= size_) throw Error("X01", "", fmt::format("sample {} of a pass over {} was asked for", index, size_));
  do {
    uint64_t left = index >> right_bits_;
    uint64_t right = index & right_mask_;
    for (size_t i = 0; i < rounds; i += 2) {
      left ^= mixed(right ^ round_keys_[i]) & left_mask_;
      right ^= mixed(left ^ round_keys_[i + 1]) & right_mask_;
    }
    index = left << right_bits_ | right;
  } while (index >= size_);
  return index;
}

}  // namespace lockstep
