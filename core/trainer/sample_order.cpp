#include "core/trainer/sample_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/random/permutation.h"

namespace lockstep {

SampleOrder::SampleOrder(Options options) : options_(options) {
  if (options_.rows <= 0) throw Error("D01", "data.train", "has no rows");
  if (options_.drop_remainder && !options_.repeat_before_batch && options_.rows < options_.global_batch) {
    throw Error("D07", "data.train", fmt::format("{} rows, global_batch {}: nothing is left to train on; lower train.global_batch or set drop_remainder: false", options_.rows, options_.global_batch));
  }
  batch_.reserve(static_cast<size_t>(options_.global_batch));
}

void SampleOrder::append(int64_t epoch, int64_t begin, int64_t end) {
  if (!options_.shuffle) {
    for (int64_t i = begin; i < end; ++i) batch_.push_back(i);
    return;
  }
  const Permutation order(static_cast<uint64_t>(options_.rows), options_.seed, static_cast<uint64_t>(epoch));
  for (int64_t i = begin; i < end; ++i) batch_.push_back(static_cast<int64_t>(order(static_cast<uint64_t>(i))));
}

std::span<const int64_t> SampleOrder::next(Position& position) {
  batch_.clear();
  ++position.step;
  if (options_.repeat_before_batch) {
    while (static_cast<int64_t>(batch_.size()) < options_.global_batch) {
      const int64_t end = std::min(options_.rows, position.consumed + options_.global_batch - static_cast<int64_t>(batch_.size()));
      append(position.epoch, position.consumed, end);
      position.consumed = end;
      if (position.consumed == options_.rows) {
        ++position.epoch;
        position.consumed = 0;
      }
    }
    return batch_;
  }
  const int64_t end = std::min(options_.rows, position.consumed + options_.global_batch);
  append(position.epoch, position.consumed, end);
  position.consumed = end;
  const int64_t left = options_.rows - end;
  if (left == 0 || (options_.drop_remainder && left < options_.global_batch)) {
    ++position.epoch;
    position.consumed = 0;
  }
  return batch_;
}

int64_t SampleOrder::steps_per_epoch() const {
  const int64_t whole = options_.rows / options_.global_batch;
  const bool short_one = options_.rows % options_.global_batch != 0 && !options_.drop_remainder;
  return std::max<int64_t>(1, whole + (short_one ? 1 : 0));
}

}  // namespace lockstep
