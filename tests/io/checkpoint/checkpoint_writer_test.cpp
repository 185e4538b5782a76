#include "io/checkpoint/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <new>

#include "tests/io/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

TEST(CheckpointWriter, ReportsACommitOnlyOnceItIsOnTheDisk) {
  const TemporaryFolder run;
  CheckpointWriter writer(run.path(), 2);
  std::promise<void> go;
  std::shared_future<void> gate = go.get_future().share();
  writer.save(3, [gate] {
    gate.wait();
    return content_of(3);
  });
  EXPECT_TRUE(writer.busy());
  EXPECT_FALSE(writer.outcome());
  EXPECT_TRUE(names_in(run.path()).empty());
  go.set_value();
  writer.wait();
  EXPECT_FALSE(writer.busy());
  const auto outcome = writer.outcome();
  ASSERT_TRUE(outcome && outcome->commit);
  EXPECT_EQ(outcome->step, 3);
  EXPECT_EQ(outcome->commit->folder, run / "step_00000003");
  EXPECT_EQ(find_newest(run.path()).newest->step, 3);
  EXPECT_FALSE(writer.outcome());
}

TEST(CheckpointWriter, KeepsOneSaveInFlightAndTheirOrder) {
  const TemporaryFolder run;
  CheckpointWriter writer(run.path(), 2);
  for (int64_t step = 1; step <= 4; ++step) writer.save(content_of(step));
  writer.wait();
  for (int64_t step = 1; step <= 4; ++step) EXPECT_EQ(writer.outcome()->commit->step, step);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000003", "step_00000004"}));
}

TEST(CheckpointWriter, FinishesTheSaveInFlightWhenItGoes) {
  const TemporaryFolder run;
  { CheckpointWriter(run.path(), 2).save(content_of(9)); }
  EXPECT_EQ(find_newest(run.path()).newest->step, 9);
}

/// Full until it is emptied.
class FullDisk : public FileOperations {
 public:
  ssize_t write(int file, const void* bytes, size_t count) override {
    if (!full) return FileOperations::write(file, bytes, count);
    errno = ENOSPC;
    return -1;
  }
  std::atomic<bool> full{true};
};

TEST(CheckpointWriter, CountsFailuresInARowAndGoesOn) {
  const TemporaryFolder run;
  FullDisk disk;
  CheckpointWriter writer(run.path(), 2, disk);
  for (int64_t step = 1; step <= 2; ++step) writer.save(content_of(step));
  writer.wait();
  EXPECT_EQ(writer.failures_in_a_row(), 2);
  const auto outcome = writer.outcome();
  ASSERT_TRUE(outcome && outcome->error);
  EXPECT_EQ(outcome->error->exit_code(), ExitCode::storage);
  EXPECT_NE(outcome->error->problems()[0].message.find("the checkpoint of step 1 was not saved: cannot write: No space left on device"), std::string::npos) << outcome->error->what();
  EXPECT_TRUE(names_in(run.path()).empty());

  disk.full = false;
  writer.save(content_of(3));
  writer.wait();
  EXPECT_EQ(writer.failures_in_a_row(), 0);
  EXPECT_EQ(find_newest(run.path()).newest->step, 3);
}

TEST(CheckpointWriter, TurnsAnyFailureWhileMakingIntoAnOutcome) {
  const TemporaryFolder run;
  CheckpointWriter writer(run.path(), 2);
  writer.save(1, []() -> CheckpointContent { throw std::bad_alloc(); });
  writer.wait();
  EXPECT_EQ(writer.outcome()->error->exit_code(), ExitCode::storage);
}

}  // namespace
}  // namespace lockstep
