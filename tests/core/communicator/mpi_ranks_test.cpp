#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::HasSubstr;

namespace {

std::string program() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mpi_ranks"; }

std::string mpirun(int ranks, const std::string& arguments) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  return "mpirun --oversubscribe --bind-to none -n " + std::to_string(ranks) + " " + program() + " " + arguments;
}

/// What the ranks printed, and that all left with 0.
std::string output_of(int ranks, const std::string& arguments) {
  const std::string command = "timeout -k 5 240 " + mpirun(ranks, arguments) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char line[4096];
  while (fgets(line, sizeof(line), pipe) != nullptr) output += line;
  EXPECT_EQ(pclose(pipe), 0) << output;
  return output;
}

}  // namespace

struct Layout {
  int ranks;
  int nodes;
};

class MpiLayouts : public testing::TestWithParam<Layout> {};

TEST_P(MpiLayouts, ReduceInTreeOrder) {
  const auto [ranks, nodes] = GetParam();
  const std::string output = output_of(ranks, "sums " + std::to_string(nodes));
  for (int rank = 0; rank < ranks; ++rank) EXPECT_THAT(output, HasSubstr("rank " + std::to_string(rank) + ": done"));
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiLayouts, testing::Values(Layout{2, 1}, Layout{3, 1}, Layout{4, 1}, Layout{2, 2}, Layout{4, 2}, Layout{4, 3}),
                         [](const auto& layout) { return std::to_string(layout.param.ranks) + "RanksOn" + std::to_string(layout.param.nodes); });

TEST(MpiRanks, EndWithTheProblemsOfTheOneThatFailed) {
  for (const int nodes : {1, 3}) {
    const std::string output = output_of(3, "failure " + std::to_string(nodes));
    for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(output, HasSubstr("rank " + std::to_string(rank) + ": error[D07] x.h5: has 3 rows, expected 4"));
  }
}

TEST(MpiRanks, NameTheRankThatDoesNotCome) {
  const std::string one_node = output_of(3, "missing 1");
  EXPECT_THAT(one_node, HasSubstr("rank 0: error[P01] rank "));
  EXPECT_THAT(one_node, HasSubstr("waited 0.5 s in 'epoch end' for rank 2; rank 2 was last in 'set-up'"));
  const std::string two_nodes = output_of(2, "missing 2");
  EXPECT_THAT(two_nodes, HasSubstr("rank 0: error[P01] rank 0 waited 0.5 s in 'epoch end' for rank 1"));
}

TEST(MpiRanks, DieWithTheirLauncher) {
  const std::string command = "exec timeout -s KILL 50 " + mpirun(2, "orphan 1");
  FILE* pipe = popen(command.c_str(), "r");
  char line[256] = {};
  int rank = 0;
  ASSERT_NE(fgets(line, sizeof(line), pipe), nullptr);
  ASSERT_EQ(std::sscanf(line, "pid %d", &rank), 1);
  // The rank's parent is mpirun.
  std::ifstream status("/proc/" + std::to_string(rank) + "/stat");
  std::string pid, name, state;
  int parent = 0;
  status >> pid >> name >> state >> parent;
  ASSERT_GT(parent, 1);
  kill(parent, SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ifstream still("/proc/" + std::to_string(rank) + "/stat");
    gone = !(still >> pid >> name >> state) || state == "Z";
  }
  EXPECT_TRUE(gone);
  pclose(pipe);
}
