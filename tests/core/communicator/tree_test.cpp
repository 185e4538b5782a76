#include "core/communicator/tree.h"

#include <gtest/gtest.h>

#include "core/communicator/sliced_reducer.h"
#include "core/error/error.h"
#include "tests/core/communicator/checks.h"

using namespace lockstep;

TEST(Tree, SplitsAtTheLargestPowerOfTwoBelowItsSize) {
  EXPECT_EQ(tree_middle({0, 2}), 1);
  EXPECT_EQ(tree_middle({0, 3}), 2);
  EXPECT_EQ(tree_middle({0, 4}), 2);
  EXPECT_EQ(tree_middle({0, 5}), 4);
  EXPECT_EQ(tree_middle({0, 8}), 4);
  EXPECT_EQ(tree_middle({4, 7}), 6);
}

TEST(Tree, FindsTheLargestSubtreesInsideARun) {
  EXPECT_EQ(subtrees_inside(8, {0, 8}), (std::vector<Range>{{0, 8}}));
  EXPECT_EQ(subtrees_inside(8, {3, 8}), (std::vector<Range>{{3, 4}, {4, 8}}));
  EXPECT_EQ(subtrees_inside(6, {1, 5}), (std::vector<Range>{{1, 2}, {2, 4}, {4, 5}}));
  EXPECT_EQ(subtrees_inside(6, {4, 6}), (std::vector<Range>{{4, 6}}));
  EXPECT_TRUE(subtrees_inside(6, {2, 2}).empty());
}

TEST(Tree, AddsInItsOwnOrderFromLeavesAndFromSubtrees) {
  constexpr int64_t elements = 2500;
  for (int count = 1; count <= 33; ++count) {
    std::vector<std::vector<double>> values(static_cast<size_t>(count), std::vector<double>(elements));
    std::vector<Range> leaves;
    std::vector<const std::byte*> inputs;
    for (int replica = 0; replica < count; ++replica) {
      checks::fill<double>(std::as_writable_bytes(std::span(values[static_cast<size_t>(replica)])), replica, 0);
      leaves.push_back({replica, replica + 1});
      inputs.push_back(reinterpret_cast<const std::byte*>(values[static_cast<size_t>(replica)].data()));
    }
    const std::vector<double>& expected = checks::expected_sums<double>(count, elements, 0);
    std::vector<double> out(elements);
    const std::byte* sum = TreeSum(DType::f64, {0, count}, leaves).run(inputs.data(), 0, elements, reinterpret_cast<std::byte*>(out.data()));
    ASSERT_EQ(std::memcmp(sum, expected.data(), elements * sizeof(double)), 0) << count << " replicas";

    // The same from what two ranks would send.
    for (int cut = 1; cut < count; cut += 3) {
      std::vector<Range> parts;
      for (const Range run : {Range{0, cut}, Range{cut, count}}) {
        for (const Range& part : subtrees_inside(count, run)) parts.push_back(part);
      }
      std::vector<std::vector<double>> sums(parts.size(), std::vector<double>(elements));
      std::vector<const std::byte*> sent;
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::vector<Range> of_part(leaves.begin() + parts[i].begin, leaves.begin() + parts[i].end);
        sent.push_back(TreeSum(DType::f64, parts[i], of_part).run(inputs.data() + parts[i].begin, 0, elements, reinterpret_cast<std::byte*>(sums[i].data())));
      }
      const std::byte* joined = TreeSum(DType::f64, {0, count}, parts).run(sent.data(), 0, elements, reinterpret_cast<std::byte*>(out.data()));
      ASSERT_EQ(std::memcmp(joined, expected.data(), elements * sizeof(double)), 0) << count << " replicas cut at " << cut;
    }
  }
}

TEST(Tree, IsWrittenInPostfixForDevices) {
  EXPECT_EQ(postfix_of({0, 1}, {{0, 1}}), (std::vector<int>{0}));
  EXPECT_EQ(postfix_of({0, 5}, {{0, 1}, {1, 2}, {2, 4}, {4, 5}}), (std::vector<int>{0, 1, -1, 2, -1, 3, -1}));
}

TEST(Tree, RefusesDTypesThatItDoesNotAdd) {
  try {
    TreeSum(DType::f16, {0, 1}, {{0, 1}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "error[X01] replicas are summed in float32, float64, int64 or uint64; found float16");
  }
}

TEST(Slices, AreWholeBlocksAsEvenAsCanBe) {
  EXPECT_EQ(slice_of(10 * slice_block, 0, 3), (Range{0, 4 * slice_block}));
  EXPECT_EQ(slice_of(10 * slice_block, 2, 3), (Range{7 * slice_block, 10 * slice_block}));
  EXPECT_EQ(slice_of(5, 0, 3), (Range{0, 5}));
  EXPECT_EQ(slice_of(5, 2, 3), (Range{5, 5}));
  EXPECT_EQ(slice_of(slice_block + 1, 1, 2), (Range{slice_block, slice_block + 1}));
  EXPECT_EQ(slice_of(0, 1, 2), (Range{0, 0}));
}
