// Whole runs of the program: the same bytes at any number of ranks, exact resumes, and what must never pass in silence.

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/launcher/program/run.h"

namespace lockstep::test {
namespace {

// BatchNormalization, Dropout, shuffling, a ragged last batch (70 rows in batches of 16, the last of 6 over 4 replicas: 2, 2, 2 and none).
const std::string job = R"(name: small
seed: 3
model:
  inputs: [{name: x, shape: [6]}]
  layers:
    - {name: hidden, type: Dense, units: 8, activation: relu}
    - {name: norm, type: BatchNormalization}
    - {name: drop, type: Dropout, rate: 0.25}
    - {name: logits, type: Dense, units: 3, kernel_regularizer: {type: L2, l2: 0.01}}
data:
  train:
    format: synthetic
    samples: 70
    inputs: {x: {random: normal}}
    targets: {logits: {random: integer, low: 0, high: 3, shape: []}}
  validation:
    format: synthetic
    samples: 21
    inputs: {x: {random: normal}}
    targets: {logits: {random: integer, low: 0, high: 3, shape: []}}
train:
  epochs: 3
  global_batch: 16
  replicas: 4
  optimizer: {type: Adam, learning_rate: {type: CosineDecay, initial_learning_rate: 0.05, decay_steps: 20}}
  losses: {type: SparseCategoricalCrossentropy, from_logits: true}
  metrics: [accuracy]
  log_every_steps: 1
checkpoint: {every_steps: 2}
)";

class Train : public testing::Test {
 protected:
  void SetUp() override { path_ = folder_.write("job.yaml", job); }

  std::string arguments(const std::string& run, const std::string& overrides = "") const { return "train " + path_ + " run_folder=" + (folder_ / run) + " " + overrides; }
  std::string weights(const std::string& run) const { return contents(folder_ / (run + "/checkpoints/latest/model.keras")); }
  std::string metrics(const std::string& run) const { return contents(folder_ / (run + "/metrics.csv")) + contents(folder_ / (run + "/epochs.csv")); }

  Folder folder_;
  std::string path_;
};

TEST_F(Train, WritesTheSameBytesAtAnyNumberOfRanks) {
  ASSERT_EQ(run_program(arguments("one")).code, 0);
  ASSERT_FALSE(weights("one").empty());
  const std::string rows = metrics("one");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 15 + 1 + 3);
  for (const int ranks : {2, 3, 4}) {
    const std::string name = "threads" + std::to_string(ranks);
    const Outcome outcome = run_program(arguments(name), ranks);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(weights(name), weights("one")) << ranks << " threads";
    EXPECT_EQ(metrics(name), metrics("one")) << ranks << " threads";
  }
  for (const int ranks : {2, 3}) {
    const std::string name = "mpi" + std::to_string(ranks);
    const Outcome outcome = run_mpi(arguments(name), ranks);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(weights(name), weights("one")) << ranks << " ranks";
    EXPECT_EQ(metrics(name), metrics("one")) << ranks << " ranks";
  }
}

TEST_F(Train, SynchronizedStatisticsAreTheSameAtAnyNumberOfRanks) {
  ASSERT_EQ(run_program(arguments("one", "+model.layers[1].synchronized=true")).code, 0);
  ASSERT_EQ(run_program(arguments("three", "+model.layers[1].synchronized=true"), 3).code, 0);
  EXPECT_EQ(weights("three"), weights("one"));
  ASSERT_EQ(run_program(arguments("apart")).code, 0);
  EXPECT_NE(weights("apart"), weights("one"));
}

TEST_F(Train, KilledAndStartedAgainEndsWithTheSameBytes) {
  ASSERT_EQ(run_program(arguments("whole")).code, 0);
  int ranks = 4;
  // In the middle of an epoch, at its end, before the first checkpoint; each goes on at another number of ranks.
  for (const int step : {8, 6, 1}) {
    const std::string name = "killed" + std::to_string(step);
    const Outcome killed = run_mpi(arguments(name, "\"faults=[{kind: kill, rank: 1, step: " + std::to_string(step) + "}]\""), 4);
    ASSERT_NE(killed.code, 0);
    ASSERT_NE(killed.code, 124);
    const Outcome resumed = run_program(arguments(name), --ranks);
    ASSERT_EQ(resumed.code, 0) << resumed.output;
    if (step > 2) EXPECT_NE(resumed.output.find("resuming from"), std::string::npos) << resumed.output;
    EXPECT_EQ(weights(name), weights("whole")) << "killed at step " << step;
    EXPECT_EQ(metrics(name), metrics("whole")) << "killed at step " << step;
  }
}

TEST_F(Train, AFinishedRunSaysSoAndMoreEpochsGoOn) {
  ASSERT_EQ(run_program(arguments("a")).code, 0);
  const Outcome again = run_program(arguments("a"));
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.output.find("finished before"), std::string::npos) << again.output;
  ASSERT_EQ(run_program(arguments("a", "train.epochs=5")).code, 0);
  ASSERT_EQ(run_program(arguments("b", "train.epochs=5")).code, 0);
  EXPECT_EQ(weights("a"), weights("b"));
  EXPECT_EQ(metrics("a"), metrics("b"));
}

TEST_F(Train, ASignalCommitsAndExits75) {
  // The rank tells itself to stop by the signal that a scheduler would send.
  const Outcome stopped = run_shell(std::string(LOCKSTEP_PROGRAM) + " " + arguments("a", "train.epochs=100000 train.log_every_steps=1000 checkpoint.every_steps=100000") + " & child=$!; sleep 1; kill -USR2 $child; wait $child");
  EXPECT_EQ(stopped.code, 75) << stopped.output;
  EXPECT_NE(stopped.output.find("committed step"), std::string::npos) << stopped.output;
}

TEST_F(Train, RefusesChangedKeysByName) {
  ASSERT_EQ(run_program(arguments("a")).code, 0);
  const Outcome changed = run_program(arguments("a", "train.epochs=4 train.global_batch=32"));
  EXPECT_EQ(changed.code, 3);
  EXPECT_NE(changed.output.find("train.global_batch: 32, was 16"), std::string::npos) << changed.output;
  EXPECT_EQ(run_program(arguments("a", "train.epochs=4 train.global_batch=32 --allow-config-change")).code, 0);
  EXPECT_EQ(run_program(arguments("a", "train.epochs=9 model.layers[0].units=9 --allow-config-change")).code, 3);
}

TEST_F(Train, ADamagedCheckpointIsNamedAndTheOneBeforeIsUsed) {
  ASSERT_EQ(run_program(arguments("whole")).code, 0);
  ASSERT_EQ(run_program(arguments("a", "train.epochs=2")).code, 0);
  const std::string newest = folder_ / "a/checkpoints/step_00000010/model.keras";
  std::string bytes = contents(newest);
  ASSERT_FALSE(bytes.empty());
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(newest, std::ios::binary) << bytes;
  const Outcome resumed = run_program(arguments("a"));
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("step_00000010"), std::string::npos) << resumed.output;
  EXPECT_NE(resumed.output.find("step_00000008"), std::string::npos) << resumed.output;
  EXPECT_EQ(weights("a"), weights("whole"));
  EXPECT_EQ(metrics("a"), metrics("whole"));
}

TEST_F(Train, FaultsOfTheStartNameTheRankBeforeAnyStep) {
  struct Row {
    std::string kind;
    int code;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{{"skip_warm_up", 5, "rank 2 did not run the warm-up"}, {"fresh_weights", 5, "on rank 2 differs"}, {"altered_weight", 5, "on rank 2 differs"}, {"shared_device", 4, "rank 1 and rank 2 share one device"}}) {
    std::string restore;
    if (row.kind == "fresh_weights") {
      // Fresh weights are the same everywhere: only beside restored ones do they differ.
      ASSERT_EQ(run_program(arguments("source", "train.epochs=1")).code, 0);
      restore = "restore.from=" + (folder_ / "source/checkpoints/latest/model.keras");
    }
    const Outcome outcome = run_program(arguments(row.kind, restore + " \"faults=[{kind: " + row.kind + ", rank: 2}]\""), 4);
    EXPECT_EQ(outcome.code, row.code) << outcome.output;
    EXPECT_NE(outcome.output.find(row.says), std::string::npos) << row.kind << ": " << outcome.output;
    EXPECT_EQ(outcome.output.find("step 1 "), std::string::npos) << row.kind << ": " << outcome.output;
  }
}

TEST_F(Train, AFlippedWeightIsFoundAtTheNextAudit) {
  const Outcome outcome = run_program(arguments("a", "checkpoint.every_steps=1000 audit.every_steps=1 \"faults=[{kind: flip, rank: 1, step: 4}]\""), 2);
  EXPECT_EQ(outcome.code, 5) << outcome.output;
  EXPECT_NE(outcome.output.find("on rank 1 differs"), std::string::npos) << outcome.output;
}

TEST_F(Train, AnErrorOnOneRankIsToldOnceAndEndsAll) {
  const Outcome outcome = run_mpi(arguments("a", "\"faults=[{kind: throw, rank: 1, step: 3}]\""), 3, 20);
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124);
  const size_t first = outcome.output.find("rank 1 failed at step 3");
  ASSERT_NE(first, std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("rank 1 failed at step 3", first + 1), std::string::npos) << outcome.output;
}

TEST_F(Train, AStoppedRankIsNamedWithinTheLimit) {
  const Outcome outcome = run_mpi(arguments("a", "watchdog.limit_seconds=8 \"faults=[{kind: stop, rank: 0, step: 3}]\""), 2, 60);
  EXPECT_EQ(outcome.code, 5) << outcome.output;
  EXPECT_NE(outcome.output.find("for rank 0"), std::string::npos) << outcome.output;
}

TEST_F(Train, MoreTasksThanMpiKnowsIsRefusedAtOnce) {
  const Outcome outcome = run_shell("SLURM_STEP_NUM_TASKS=4 " + std::string(LOCKSTEP_PROGRAM) + " " + arguments("a"), 5);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.output.find("4 tasks"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("1 rank"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("mpirun -n"), std::string::npos) << outcome.output;
}

TEST_F(Train, MoreRanksThanReplicasAreRefusedWithBothWaysOut) {
  const Outcome outcome = run_program(arguments("a"), 5);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.output.find("at most 4 ranks"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("restore.from"), std::string::npos) << outcome.output;
}

TEST_F(Train, AMisspeltKeyIsTaughtWithItsPlace) {
  const Outcome outcome = run_program(arguments("a", "train.epoch=3"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("epochs"), std::string::npos) << outcome.output;
}

TEST_F(Train, EvaluationCountsEverySampleOnceAtAnyNumberOfRanks) {
  ASSERT_EQ(run_program(arguments("a")).code, 0);
  const std::string target = "evaluate " + (folder_ / "a") + " --quiet";
  const Outcome one = run_program(target);
  EXPECT_NE(one.output.find("\"samples\": 21"), std::string::npos) << one.output;
  EXPECT_EQ(run_program(target, 2).output, one.output);
  EXPECT_EQ(run_mpi(target, 3).output, one.output);
}

}  // namespace
}  // namespace lockstep::test
