#include "core/trainer/sample_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "core/error/error.h"

namespace lockstep {
namespace {

std::vector<size_t> sizes(SampleOrder::Options options, int steps) {
  SampleOrder order(options);
  Position position;
  std::vector<size_t> result;
  for (int i = 0; i < steps; ++i) result.push_back(order.next(position).size());
  return result;
}

TEST(SampleOrder, EachPassEndsWithItsOwnShortBatch) { EXPECT_EQ(sizes({.rows = 10, .global_batch = 4}, 5), (std::vector<size_t>{4, 4, 2, 4, 4})); }

TEST(SampleOrder, RepeatBeforeBatchRunsAcrossPasses) { EXPECT_EQ(sizes({.rows = 10, .global_batch = 4, .repeat_before_batch = true}, 5), (std::vector<size_t>{4, 4, 4, 4, 4})); }

TEST(SampleOrder, RepeatBeforeBatchTakesEverySampleOnceAPass) {
  SampleOrder order({.rows = 10, .global_batch = 4, .seed = 3, .repeat_before_batch = true});
  Position position;
  std::vector<int64_t> all;
  for (int i = 0; i < 5; ++i) {
    const auto batch = order.next(position);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.begin() + 10).size(), 10u);
  EXPECT_EQ(std::set<int64_t>(all.begin() + 10, all.end()).size(), 10u);
}

TEST(SampleOrder, DroppingTheRemainderLeavesWholeBatches) { EXPECT_EQ(sizes({.rows = 10, .global_batch = 4, .drop_remainder = true}, 4), (std::vector<size_t>{4, 4, 4, 4})); }

TEST(SampleOrder, StoppedInAnEpochTheOtherSamplesFollowNoneTwice) {
  const SampleOrder::Options options{.rows = 64, .global_batch = 4, .seed = 11};
  SampleOrder first(options);
  Position position;
  for (int i = 0; i < 16; ++i) first.next(position);  // epoch 0
  std::set<int64_t> seen;
  for (int i = 0; i < 5; ++i) {
    for (const int64_t row : first.next(position)) EXPECT_TRUE(seen.insert(row).second);
  }
  ASSERT_EQ(position, (Position{1, 20, 21}));
  SampleOrder second(options);  // a new process with the stored position
  std::set<int64_t> others;
  while (position.epoch == 1) {
    for (const int64_t row : second.next(position)) {
      EXPECT_FALSE(seen.contains(row));
      EXPECT_TRUE(others.insert(row).second);
    }
  }
  EXPECT_EQ(others.size(), 44u);
}

TEST(SampleOrder, EpochsAndSeedsOrderDifferently) {
  const auto epoch = [](uint64_t seed, int64_t number) {
    SampleOrder order({.rows = 50, .global_batch = 50, .seed = seed});
    Position position{number, 0, 0};
    const auto batch = order.next(position);
    return std::vector<int64_t>(batch.begin(), batch.end());
  };
  EXPECT_NE(epoch(1, 0), epoch(1, 1));
  EXPECT_NE(epoch(1, 0), epoch(2, 0));
  EXPECT_EQ(epoch(1, 5), epoch(1, 5));
}

TEST(SampleOrder, RefusesToDropEverything) {
  try {
    SampleOrder({.rows = 50, .global_batch = 64, .drop_remainder = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].code, "D07");
    EXPECT_NE(std::string(error.what()).find("50 rows, global_batch 64"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
