#pragma once

#include <cstdint>

namespace lockstep {

/// A run of whole numbers, end excluded.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool contains(int64_t i) const { return begin <= i && i < end; }
  bool operator==(const Range&) const = default;
};

/// Which replicas each rank hosts: contiguous runs, as even as can be, in rank order. Needs 1 <= ranks <= count.
struct Replicas {
  int count = 1;
  int ranks = 1;

  Range of_rank(int rank) const { return {int64_t{rank} * count / ranks, int64_t{rank + 1} * count / ranks}; }
  int rank_of(int replica) const {
    int rank = static_cast<int>(int64_t{replica} * ranks / count);
    while (of_rank(rank).end <= replica) ++rank;
    while (of_rank(rank).begin > replica) --rank;
    return rank;
  }
};

/// Rows of a global batch of `rows` that replica k takes: the k-th run of ceil(rows / count), the last ones fewer, perhaps none (tf.distribute's split).
inline Range rows_of_replica(int64_t rows, int replica, int count) {
  const int64_t share = (rows + count - 1) / count;
  const int64_t begin = share * replica < rows ? share * replica : rows;
  const int64_t end = share * (replica + 1) < rows ? share * (replica + 1) : rows;
  return {begin, end};
}

}  // namespace lockstep
