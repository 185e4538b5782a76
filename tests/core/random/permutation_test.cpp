#include "core/random/permutation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

std::vector<uint64_t> order_of(const Permutation& permutation) {
  std::vector<uint64_t> order(permutation.size());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = permutation(i);
  return order;
}

}  // namespace

TEST(Permutation, VisitsEverySampleOnce) {
  std::vector<uint64_t> sizes(130);
  for (uint64_t i = 0; i < sizes.size(); ++i) sizes[i] = i;
  sizes.insert(sizes.end(), {1000, 4095, 4096, 4097, 60000});
  for (const uint64_t size : sizes) {
    std::vector<uint64_t> order = order_of(Permutation(size, 7, size));
    std::sort(order.begin(), order.end());
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(order[i], i) << "of " << size;
  }
}

TEST(Permutation, ReachesEveryOrderOfThreeSamples) {
  std::vector<int> counts(6);
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const std::vector<uint64_t> order = order_of(Permutation(3, 1, epoch));
    counts[order[0] * 2 + (order[1] > order[2])]++;
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 5 * 29);  // five standard deviations of 6000 draws with probability 1/6
}

TEST(Permutation, LeavesNoSampleNearItsPlace) {
  constexpr uint64_t size = 60000;
  const Permutation permutation(size, 7, 0);
  double correlation = 0;
  for (uint64_t i = 0; i < size; ++i) correlation += (i / double{size} - 0.5) * (permutation(i) / double{size} - 0.5) * 12;
  EXPECT_NEAR(correlation / size, 0.0, 5 / std::sqrt(double{size}));
}

TEST(Permutation, DiffersBetweenEpochsAndBetweenSeeds) {
  const std::vector<uint64_t> order = order_of(Permutation(64, 7, 0));
  EXPECT_EQ(order, order_of(Permutation(64, 7, 0)));
  EXPECT_NE(order, order_of(Permutation(64, 7, 1)));
  EXPECT_NE(order, order_of(Permutation(64, 8, 0)));
}

TEST(Permutation, TakesSizesBeyondMemory) {
  const uint64_t size = (uint64_t{1} << 62) + 1;
  const Permutation permutation(size, 7, 0);
  EXPECT_LT(permutation(size - 1), size);
  EXPECT_NE(permutation(0), permutation(1));
}

TEST(Permutation, RefusesAnIndexOutsideThePass) {
  EXPECT_THROW(Permutation(0, 7, 0)(0), Error);
  EXPECT_THROW(Permutation(10, 7, 0)(10), Error);
}

// A changed order here changes every run that was ever started.
TEST(Permutation, KeepsItsOrders) {
  EXPECT_EQ(order_of(Permutation(1, 7, 0)), (std::vector<uint64_t>{0}));
  EXPECT_EQ(order_of(Permutation(10, 7, 0)), (std::vector<uint64_t>{1, 3, 4, 8, 7, 0, 2, 5, 6, 9}));
  EXPECT_EQ(order_of(Permutation(10, 7, 1)), (std::vector<uint64_t>{7, 3, 6, 4, 0, 8, 1, 2, 9, 5}));
  EXPECT_EQ(Permutation(60000, 7, 0)(0), 40689u);
}

}  // namespace lockstep
