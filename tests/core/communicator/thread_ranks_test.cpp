#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/communicator/problems.h"
#include "tests/core/communicator/checks.h"

using namespace lockstep;
using testing::HasSubstr;

namespace {

/// What each of `size` ranks threw, as text; empty where it did not.
std::vector<std::string> failures_of(int size, const std::function<void(Communicator&)>& rank_main, int nodes = 1) {
  std::vector<std::string> texts(static_cast<size_t>(size));
  try {
    run_ranks_as_threads(
        size,
        [&](Communicator& communicator) {
          try {
            rank_main(communicator);
          } catch (const std::exception& error) {
            texts[static_cast<size_t>(communicator.rank())] = error.what();
            throw;
          }
        },
        nodes);
  } catch (const std::exception&) {
    // Its text is in the list.
  }
  return texts;
}

double seconds_since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

}  // namespace

TEST(ThreadRanks, ReduceInTreeOrderOnAnyNumberOfRanksAndNodes) {
  for (int replicas = 1; replicas <= 9; ++replicas) {
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      for (int nodes = 1; nodes <= std::min(ranks, 3); ++nodes) {
        run_ranks_as_threads(
            ranks,
            [&](Communicator& communicator) {
              for (const int64_t elements : {0, 1, 4095, 4096, 12289}) checks::reduces_in_tree_order<float>(communicator, DType::f32, elements, replicas, 2);
              checks::reduces_in_tree_order<double>(communicator, DType::f64, 12289, replicas, 2);
              checks::reduces_in_tree_order<int64_t>(communicator, DType::i64, 4097, replicas, 2);
              for (const int64_t elements : {0, 1, 7, 500}) checks::sums_in_tree_order<double>(communicator, DType::f64, elements, replicas, 4);
              checks::sums_in_tree_order<uint64_t>(communicator, DType::u64, 3, replicas, 4);
              checks::sums_in_tree_order<float>(communicator, DType::f32, 5000, replicas, 4);
            },
            nodes);
      }
    }
  }
}

TEST(ThreadRanks, PassTextsWithinAndBetweenNodes) {
  for (int nodes = 1; nodes <= 5; ++nodes) run_ranks_as_threads(5, checks::passes_texts, nodes);
  checks::passes_texts(*make_single_communicator());
}

TEST(ThreadRanks, NameTheirHosts) {
  run_ranks_as_threads(
      3,
      [](Communicator& communicator) {
        ASSERT_EQ(communicator.hosts().size(), 3u);
        EXPECT_EQ(communicator.hosts()[0], communicator.hosts()[1]);
        EXPECT_NE(communicator.hosts()[0], communicator.hosts()[2]);
      },
      2);
}

TEST(ThreadRanks, LoseNoUpdateInManyQuickSteps) {
  constexpr int steps = 10000;
  for (const int nodes : {1, 2}) {
    run_ranks_as_threads(
        3,
        [&](Communicator& communicator) {
          const Replicas replicas{3, 3};
          const auto sum = communicator.make_replica_sum(DType::u64, 2, replicas);
          const auto reducer = communicator.make_reducer(DType::u64, 2 * slice_block + 5, replicas);
          uint64_t* mine = reinterpret_cast<uint64_t*>(sum->contribution(0).data());
          uint64_t* gradients = reinterpret_cast<uint64_t*>(reducer->contribution(0).data());
          std::vector<uint64_t> full(2 * slice_block + 5);
          const auto rank = static_cast<uint64_t>(communicator.rank());
          const Reducer::Take take = [&](int64_t first, std::span<const std::byte> sums) { std::memcpy(full.data() + first, sums.data(), sums.size()); };
          const int count = nodes == 1 ? steps : steps / 10;
          for (int step = 0; step < count; ++step) {
            mine[0] = rank + static_cast<uint64_t>(step);
            mine[1] = rank * static_cast<uint64_t>(step);
            const uint64_t* sums = reinterpret_cast<const uint64_t*>(sum->run().data());
            checks::require(sums[0] == 3 + 3 * static_cast<uint64_t>(step) && sums[1] == 3 * static_cast<uint64_t>(step), "a small sum lost an update");
            reducer->begin();
            for (const size_t i : {size_t{0}, size_t{slice_block}, size_t{2 * slice_block + 4}}) gradients[i] = rank * i + static_cast<uint64_t>(step);
            reducer->reduce_scatter(take);
            reducer->all_gather(std::as_writable_bytes(std::span(full)));
            for (const size_t i : {size_t{0}, size_t{slice_block}, size_t{2 * slice_block + 4}}) {
              checks::require(full[i] == 3 * i + 3 * static_cast<uint64_t>(step), "a step lost an update");
            }
          }
        },
        nodes);
  }
}

TEST(ThreadRanks, NameTheRankThatDoesNotComeAndWhatItDidLast) {
  for (const int nodes : {1, 2}) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::string> texts = failures_of(
        4,
        [](Communicator& communicator) {
          communicator.set_limit(0.3);
          communicator.barrier("set-up");
          communicator.set_step(12);
          // Rank 2 ends without a word.
          if (communicator.rank() == 2) return;
          communicator.barrier("epoch end");
        },
        nodes);
    EXPECT_LT(seconds_since(start), 5);
    EXPECT_EQ(texts[2], "");
    for (const int rank : {0, 1, 3}) {
      EXPECT_THAT(texts[static_cast<size_t>(rank)], HasSubstr("error[P01] rank ")) << nodes;
      EXPECT_THAT(texts[static_cast<size_t>(rank)], HasSubstr("waited 0.3 s in 'epoch end' of step 12 for rank"));
    }
    if (nodes == 1) {
      EXPECT_THAT(texts[0], HasSubstr("for rank 2; rank 2 was last in 'set-up' of step 12; start the job again"));
      EXPECT_EQ(texts[1], texts[0]);
      EXPECT_EQ(texts[3], texts[0]);
    }
  }
}

TEST(ThreadRanks, AllNameTheSameStalledRankInAStep) {
  const std::vector<std::string> texts = failures_of(3, [](Communicator& communicator) {
    communicator.set_limit(0.2);
    const auto reducer = communicator.make_reducer(DType::f32, 100, {3, 3});
    if (communicator.rank() == 1) return;
    reducer->reduce_scatter([](int64_t, std::span<const std::byte>) {});
  });
  EXPECT_THAT(texts[0], HasSubstr("waited 0.2 s in 'gradients' for rank 1; rank 1 was last in 'reducer'"));
  EXPECT_EQ(texts[2], texts[0]);
}

TEST(ThreadRanks, EndWithTheProblemsOfTheOneThatFailed) {
  const std::vector<Problem> problems{{"D07", "train.h5: /x", "has 3 rows, expected 4", "  the line\n  ^"}, {"D08", "", "and this", ""}};
  for (const int nodes : {1, 3}) {
    std::vector<std::vector<Problem>> seen(3);
    const auto rank_main = [&](Communicator& communicator) {
      communicator.barrier("set-up");
      try {
        if (communicator.rank() == 1) throw Error(problems);
        communicator.barrier("never");
      } catch (const Error& error) {
        seen[static_cast<size_t>(communicator.rank())] = error.problems();
        throw;
      }
    };
    EXPECT_THROW(run_ranks_as_threads(3, rank_main, nodes), Error);
    for (const std::vector<Problem>& of_rank : seen) {
      ASSERT_EQ(of_rank.size(), 2u);
      EXPECT_EQ(Error(of_rank).what(), std::string(Error(problems).what()));
    }
  }
}

TEST(ThreadRanks, RethrowTheFirstFailureAsItWas) {
  const auto rank_main = [](Communicator& communicator) {
    if (communicator.rank() == 2) throw std::out_of_range("my own");
    communicator.barrier("never");
  };
  EXPECT_THROW(run_ranks_as_threads(3, rank_main), std::out_of_range);
}

TEST(ThreadRanks, LeaveLongComputationsWhenAnotherFailed) {
  const std::vector<std::string> texts = failures_of(2, [](Communicator& communicator) {
    communicator.barrier("set-up");
    if (communicator.rank() == 1) throw Error("N01", "", "loss is not finite");
    const auto start = std::chrono::steady_clock::now();
    while (seconds_since(start) < 10) communicator.check();
  });
  EXPECT_EQ(texts[0], "error[N01] loss is not finite");
}

TEST(OnRoot, GivesItsBytesToAllAndItsFailureToAll) {
  for (const int nodes : {1, 2}) {
    std::vector<std::string> texts = failures_of(
        3,
        [](Communicator& communicator) {
          const std::string text = on_root(communicator, "read", [] { return std::string(300000, 'x'); });
          checks::require(text == std::string(300000, 'x'), "wrong bytes");
          on_root(communicator, "read", []() -> std::string { throw Error("H07", "model.h5: /a", "is damaged"); });
        },
        nodes);
    for (const std::string& text : texts) EXPECT_EQ(text, "error[H07] model.h5: /a: is damaged");
  }
}

TEST(OnRoot, RunsOnTheRootAlone) {
  std::atomic<int> runs = 0;
  run_ranks_as_threads(3, [&](Communicator& communicator) {
    on_root(communicator, "count", [&] {
      ++runs;
      EXPECT_EQ(communicator.rank(), 0);
      return std::string();
    });
  });
  EXPECT_EQ(runs, 1);
}

TEST(Together, ThrowsTheProblemsOfTheLowestRankThatFailed) {
  const std::vector<std::string> texts = failures_of(4, [](Communicator& communicator) {
    together(communicator, "first", [] {});
    together(communicator, "second", [&] {
      if (communicator.rank() == 1) throw std::runtime_error("rank 1's");
      if (communicator.rank() == 3) throw Error("D01", "", "rank 3's");
    });
  });
  for (const std::string& text : texts) EXPECT_EQ(text, "error[X01] rank 1's");
}

TEST(Reducer, RefusesADTypeOnEveryRank) {
  const std::vector<std::string> texts = failures_of(2, [](Communicator& communicator) { communicator.make_reducer(DType::bf16, 10, {2, 2}); });
  for (const std::string& text : texts) EXPECT_THAT(text, HasSubstr("X01"));
}

TEST(Problems, SurviveTheirWayBetweenRanks) {
  const std::vector<Problem> problems{{"Y09", "a:1:2", "unknown key", "line\n^"}, {"Y10", "", "", ""}};
  const std::vector<Problem> back = unpack(pack(problems));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(Error(back).what(), std::string(Error(problems).what()));
  EXPECT_TRUE(unpack(pack({})).empty());
  EXPECT_EQ(unpack("3:abc9:").front().code, "X01");
}

TEST(Problems, AreCutToWhatAMessageHolds) {
  const std::vector<Problem> problems{{"Y09", "place", std::string(5000, 'm'), ""}, {"Y10", "", "second", ""}};
  const std::string bytes = pack(problems, 1000);
  EXPECT_LE(bytes.size(), 1000u);
  const std::vector<Problem> back = unpack(bytes);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].code, "Y09");
  EXPECT_THAT(back[0].message, testing::EndsWith("m [...]"));
}
