#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// The order of one pass over a data set: a bijection of [0, size) that depends on (seed, epoch) alone and is evaluated at an index, in constant memory.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch);

  uint64_t size() const { return size_; }
  /// Where the sample at `index` of this pass lies in the data set. Throws X01 when index >= size.
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr size_t rounds = 8;

  uint64_t size_;
  int right_bits_;  ///< the lower part of a number; its upper part has as many bits, or one fewer
  uint64_t right_mask_;
  uint64_t left_mask_;
  std::array<uint64_t, rounds> round_keys_;
};

}  // namespace lockstep
