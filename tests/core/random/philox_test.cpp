#include "core/random/philox.h"

#include <set>

#include <gtest/gtest.h>

namespace lockstep {

// The known answers that Random123 publishes for philox4x32 with 10 rounds (its kat_vectors).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox({{0, 0, 0, 0}}, 0, 0), (RandomBits{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  EXPECT_EQ(philox({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff), (RandomBits{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  EXPECT_EQ(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0), (RandomBits{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST(Philox, AnswersWithTheBitsOfItsAddress) {
  const RandomKey key{1, 2};
  EXPECT_EQ(random_bits(key, 3, 4), random_bits(key, 3, 4));
  std::set<uint64_t> seen;
  for (const RandomKey k : {key, RandomKey{2, 2}, RandomKey{1, 3}, key.with(0), key.with(1), key.with(0).with(1), key.with(1).with(0)}) {
    for (const uint64_t row : {uint64_t{3}, uint64_t{4}, uint64_t{3} << 32}) {
      for (const uint64_t block : {uint64_t{3}, uint64_t{4}, uint64_t{4} << 32}) seen.insert(random_bits(k, row, block).half(0));
    }
  }
  EXPECT_EQ(seen.size(), 7u * 3u * 3u);
}

TEST(Philox, TurnsBitsIntoNumbersBelowOne) {
  EXPECT_EQ(uniform_f32(0), 0.0f);
  EXPECT_EQ(uniform_f32(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_f64(0), 0.0);
  EXPECT_EQ(uniform_f64(~uint64_t{0}), 1.0 - 0x1p-53);
  EXPECT_EQ((RandomBits{{1, 2, 3, 4}}.half(0)), 0x0000000200000001u);
  EXPECT_EQ((RandomBits{{1, 2, 3, 4}}.half(1)), 0x0000000400000003u);
}

TEST(Philox, TakesEachElementFromItsOwnPartOfABlock) {
  const RandomKey key{5, 6};
  for (uint64_t element = 0; element < 12; ++element) {
    EXPECT_EQ(uniform_f32_at(key, 9, element), uniform_f32(random_bits(key, 9, element / 4).word[element % 4]));
    EXPECT_EQ(uniform_f64_at(key, 9, element), uniform_f64(random_bits(key, 9, element / 2).half(element % 2)));
  }
  const NormalPair pair = normal_pair(random_bits(key, 9, 1));
  EXPECT_EQ(normal_at(key, 9, 2), pair.first);
  EXPECT_EQ(normal_at(key, 9, 3), pair.second);
}

TEST(Philox, GivesTheLargestAndTheSmallestNormalFinite) {
  const NormalPair smallest = normal_pair({{0, 0, 0, 0}});
  EXPECT_EQ(smallest.first, 0.0);
  const NormalPair largest = normal_pair({{0xffffffff, 0xffffffff, 0, 0}});
  EXPECT_DOUBLE_EQ(largest.first, std::sqrt(-2.0 * std::log(0x1p-53)));
  EXPECT_EQ(largest.second, 0.0);
}

// 100,000 draws: the bounds are five standard errors of each statistic.
TEST(Philox, SpreadsAsTheDistributionsSay) {
  constexpr int count = 100000;
  const RandomKey key{7, stream_of("dense/dropout")};
  double uniform_sum = 0, normal_sum = 0, normal_squares = 0;
  int counts[3] = {};
  for (int i = 0; i < count; ++i) {
    uniform_sum += uniform_f32_at(key, 0, i);
    const double normal = normal_at(key, 1, i);
    normal_sum += normal;
    normal_squares += normal * normal;
    const int64_t integer = integer_at(key, 2, i, -1, 2);
    ASSERT_GE(integer, -1);
    ASSERT_LT(integer, 2);
    ++counts[integer + 1];
  }
  EXPECT_NEAR(uniform_sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(normal_sum / count, 0.0, 5 * std::sqrt(1.0 / count));
  EXPECT_NEAR(normal_squares / count, 1.0, 5 * std::sqrt(2.0 / count));
  for (const int n : counts) EXPECT_NEAR(n, count / 3.0, 5 * std::sqrt(count * 2.0 / 9));
}

// A changed value here changes every run that was ever started.
TEST(Philox, KeepsTheStreamsOfNamesAndTheirNumbers) {
  EXPECT_EQ(stream_of(""), 0x2d06800538d394c2u);  // XXH3's published hash of nothing
  EXPECT_NE(stream_of("a"), stream_of("b"));
  const RandomBits bits = random_bits(RandomKey{1, stream_of("")}.with(2), 3, 4);
  EXPECT_EQ(bits.half(0), 15609991042433090657u);
  EXPECT_EQ(bits.half(1), 10162487947896248282u);
}

}  // namespace lockstep
