#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Where a run stands: which pass over the data, how many samples of it were consumed, how many steps were made.
struct Position {
  int64_t epoch = 0;     ///< counted from 0
  int64_t consumed = 0;  ///< samples of this epoch
  int64_t step = 0;      ///< over all epochs

  bool operator==(const Position&) const = default;
};

/// Which rows each step trains on: a pure function of (seed, epoch) and the position, so that a resumed run goes on with exactly the samples that an
/// uninterrupted one would take.
class SampleOrder {
 public:
  struct Options {
    int64_t rows = 0;
    int64_t global_batch = 1;
    uint64_t seed = 0;
    bool shuffle = true;
    bool drop_remainder = false;        ///< leave the short batch at the end of a pass out
    bool repeat_before_batch = false;   ///< batches run across passes, as tf.data's repeat().batch()
  };
  /// Throws D07 when dropping the remainder leaves nothing.
  explicit SampleOrder(Options options);

  /// Rows of the next global batch, in order, and moves the position behind it. Valid until the next call.
  std::span<const int64_t> next(Position& position);
  /// Steps of one pass; with repeat_before_batch those that start in it, at least.
  int64_t steps_per_epoch() const;

 private:
  void append(int64_t epoch, int64_t begin, int64_t end);

  Options options_;
  std::vector<int64_t> batch_;
};

}  // namespace lockstep
