#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// The segment through which the ranks of a node meet, as it lies in memory: Board, then a BoardLine a rank. All zero at first; counters only grow.

/// What one rank tells the others; on cache lines of its own (two: processors fetch neighbours together).
struct alignas(128) BoardLine {
  std::atomic<uint64_t> arrived;    // meetings that it has come to
  std::atomic<uint64_t> released;   // meetings of all nodes that are over; the first rank of a node says so
  std::atomic<uint64_t> published;  // passes that it has filled
  std::atomic<uint64_t> passed;     // passes that it needs no more
  std::atomic<uint64_t> value;      // for values_on_node
  std::atomic<int64_t> step;
  std::array<std::atomic<uint64_t>, 4> operation;  // text, zero-terminated
};

/// Where the first failure is told to all.
struct alignas(128) FailureSlot {
  enum State : uint32_t { empty, being_written, published };
  static constexpr size_t capacity = size_t{64} << 10;

  std::atomic<uint32_t> state;
  uint32_t size;
  char problems[capacity];  // as pack() makes them
};

/// Two buffers through which bytes pass from rank to rank.
struct alignas(4096) Board {
  static constexpr size_t pass_bytes = size_t{256} << 10;

  std::byte passes[2][pass_bytes];
  FailureSlot failure;

  BoardLine& line(int i) { return reinterpret_cast<BoardLine*>(this + 1)[i]; }
  static size_t bytes(int ranks) { return sizeof(Board) + static_cast<size_t>(ranks) * sizeof(BoardLine); }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free, "counters are shared between processes");

}  // namespace lockstep
