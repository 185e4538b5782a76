#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "core/communicator/communicator.h"

/// Checks that run on every rank, whether a thread or a process. They throw std::runtime_error on a wrong result.
namespace lockstep::checks {

inline void require(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

/// Element `i` of what replica `replica` contributes in step `step`: of very different magnitudes, so that another order of adding gives other bits.
template <class T>
T value_of(int replica, int64_t i, int step) {
  uint64_t x = static_cast<uint64_t>(replica + 1) * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(i) * 0xbf58476d1ce4e5b9ull + static_cast<uint64_t>(step) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebull;
  x ^= x >> 29;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(x);
  const T sign = (x & 1) != 0 ? T(1) : T(-1);
  return sign * static_cast<T>(x >> 40) * static_cast<T>(uint64_t{1} << ((x >> 1) % 24));
}

/// The tree as DESIGN.md has it, by recursion: split at the largest power of two below the count.
template <class T>
T tree_sum(int lo, int hi, int64_t i, int step) {
  if (hi - lo == 1) return value_of<T>(lo, i, step);
  int half = 1;
  while (half * 2 < hi - lo) half *= 2;
  const T left = tree_sum<T>(lo, lo + half, i, step);
  const T right = tree_sum<T>(lo + half, hi, i, step);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(left) + static_cast<uint64_t>(right));
  return left + right;
}

/// The sums over `replicas`, worked out once a process.
template <class T>
const std::vector<T>& expected_sums(int replicas, int64_t elements, int step) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int64_t, int>, std::vector<T>> known;
  const std::lock_guard lock(mutex);
  std::vector<T>& sums = known[{replicas, elements, step}];
  if (static_cast<int64_t>(sums.size()) != elements) {
    for (int64_t i = 0; i < elements; ++i) sums.push_back(tree_sum<T>(0, replicas, i, step));
  }
  return sums;
}

template <class T>
void fill(std::span<std::byte> bytes, int replica, int step) {
  T* values = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) values[i] = value_of<T>(replica, static_cast<int64_t>(i), step);
}

/// Some steps of reduce_scatter and all_gather: the sums are the tree's, the slices tile, every rank ends with all.
template <class T>
void reduces_in_tree_order(Communicator& communicator, DType dtype, int64_t elements, int replica_count, int steps = 3) {
  const Replicas replicas{replica_count, communicator.size()};
  const Range hosted = replicas.of_rank(communicator.rank());
  const auto reducer = communicator.make_reducer(dtype, elements, replicas);
  int64_t end = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    require(reducer->slice(rank).begin == end, "slices don't tile");
    end = reducer->slice(rank).end;
    require(end == elements || end % slice_block == 0, "a slice ends inside a block");
  }
  require(end == elements, "slices end early");

  std::vector<T> elsewhere(static_cast<size_t>(elements));
  const Range own = reducer->slice(communicator.rank());
  for (int step = 0; step < steps; ++step) {
    const std::vector<T>& expected = expected_sums<T>(replica_count, elements, step);
    // Into the reducer's own array and into another, in turn.
    const std::span<T> full = step % 2 == 0 ? std::span(reinterpret_cast<T*>(reducer->full().data()), elsewhere.size()) : std::span(elsewhere);
    reducer->begin();
    std::fill(full.begin(), full.end(), T(0));
    for (int64_t k = 0; k < hosted.size(); ++k) fill<T>(reducer->contribution(static_cast<int>(k)), static_cast<int>(hosted.begin + k), step);
    int64_t next = own.begin;
    reducer->reduce_scatter([&](int64_t first, std::span<const std::byte> sums) {
      require(first == next && sums.size() <= slice_block * sizeof(T), "runs are not in order");
      std::memcpy(full.data() + first, sums.data(), sums.size());
      next += static_cast<int64_t>(sums.size() / sizeof(T));
    });
    require(next == own.end, "a slice is not complete");
    reducer->all_gather(std::as_writable_bytes(full));
    require(elements == 0 || std::memcmp(full.data(), expected.data(), full.size() * sizeof(T)) == 0,
            "wrong sums of " + std::to_string(elements) + " elements over " + std::to_string(replica_count) + " replicas on rank " + std::to_string(communicator.rank()));
  }
}

template <class T>
void sums_in_tree_order(Communicator& communicator, DType dtype, int64_t elements, int replica_count, int runs = 5) {
  const Replicas replicas{replica_count, communicator.size()};
  const Range hosted = replicas.of_rank(communicator.rank());
  const auto sum = communicator.make_replica_sum(dtype, elements, replicas);
  for (int run = 0; run < runs; ++run) {
    for (int64_t k = 0; k < hosted.size(); ++k) fill<T>(sum->contribution(static_cast<int>(k)), static_cast<int>(hosted.begin + k), run);
    const std::span<const std::byte> result = sum->run();
    const std::vector<T>& expected = expected_sums<T>(replica_count, elements, run);
    require(result.size() == expected.size() * sizeof(T) && (result.empty() || std::memcmp(result.data(), expected.data(), result.size()) == 0), "wrong small sum");
  }
}

inline std::string text_of_rank(int rank, size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + (static_cast<size_t>(rank) * 7 + i * 3 + i / 1000) % 26);
  return text;
}

/// Broadcasts, gathers and barriers, with sizes around those at which transfers are cut.
inline void passes_texts(Communicator& communicator) {
  const int size = communicator.size();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{262144}, size_t{262145}, size_t{3000001}}) {
    for (const int root : {0, size - 1}) {
      std::string text = communicator.rank() == root ? text_of_rank(root, bytes) : std::string(bytes, '-');
      communicator.broadcast(std::as_writable_bytes(std::span(text)), root, "broadcast");
      require(text == text_of_rank(root, bytes), "wrong broadcast");
    }
    // Ranks with texts of different lengths, some empty.
    const auto length = [&](int rank) { return bytes * static_cast<size_t>(rank % 3); };
    const std::string mine = text_of_rank(communicator.rank(), length(communicator.rank()));
    const std::vector<std::string> all = communicator.all_gather(mine, "all_gather");
    require(static_cast<int>(all.size()) == size, "wrong count of texts");
    for (int rank = 0; rank < size; ++rank) require(all[static_cast<size_t>(rank)] == text_of_rank(rank, length(rank)), "wrong text");
    communicator.barrier("barrier");
    const std::vector<std::string> gathered = communicator.gather(mine, "gather");
    require(communicator.rank() == 0 ? gathered == all : gathered.empty(), "wrong gather");
  }
}

}  // namespace lockstep::checks
