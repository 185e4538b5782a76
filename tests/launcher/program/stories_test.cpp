// The two stories that the project began with, and reports of users of such systems.

#include <gtest/gtest.h>

#include "io/npy/npy.h"
#include "io/npy/npz.h"
#include "tests/launcher/program/run.h"

namespace lockstep::test {
namespace {

const std::string root = SOURCE_ROOT;

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Demo, RestoresOnFourReplicasWarmsUpAndTrains) {
  const Folder folder;
  const Outcome outcome = run_mpi("train " + root + "/jobs/demo.yaml run_folder=" + (folder / "run"), 4);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const size_t restored = outcome.output.find("restoring"), live = outcome.output.find("4 of 4 replicas live on 4 ranks, 4 devices"), data = outcome.output.find("data: 16384 rows"), first = outcome.output.find("step 1 ");
  ASSERT_NE(first, std::string::npos) << outcome.output;
  EXPECT_LT(restored, live);
  EXPECT_LT(live, data);
  EXPECT_LT(data, first);
  for (int replica = 0; replica < 4; ++replica) EXPECT_EQ(occurrences(outcome.output, "global_replica_id: " + std::to_string(replica)), 1u + 3u) << outcome.output;
  EXPECT_NE(contents(folder / "run/restore.json").find("\"dense/kernel\""), std::string::npos);
}

TEST(Demo, RefusesAClassThatIsNotDeclaredAndAWrongNumberOfRanks) {
  const Folder folder;
  const std::string train = "train " + root + "/jobs/demo.yaml run_folder=" + (folder / "run");
  const Outcome undeclared = run_program(train + " restore.custom_objects=null", 4);
  EXPECT_EQ(undeclared.code, 3) << undeclared.output;
  EXPECT_NE(undeclared.output.find("class 'TestLayer'"), std::string::npos) << undeclared.output;
  EXPECT_NE(undeclared.output.find("custom_layers:"), std::string::npos) << undeclared.output;
  EXPECT_EQ(undeclared.output.find("global_replica_id"), std::string::npos);
  const Outcome alone = run_program(train);
  EXPECT_EQ(alone.code, 4);
  EXPECT_NE(alone.output.find("asserts 4 ranks, 1 is started"), std::string::npos) << alone.output;
}

TEST(ImageEmbedding, TheBorrowingLayerFollowsTheKernelThroughTraining) {
  const Folder folder;
  const std::string job = root + "/jobs/image_embedding.yaml";
  std::string first;
  for (const int ranks : {1, 2, 4}) {
    const std::string run = folder / ("run" + std::to_string(ranks));
    ASSERT_EQ(run_program("train " + job + " run_folder=" + run + " train.epochs=2", ranks).code, 0);
    const std::string bytes = contents(run + "/checkpoints/latest/model.keras");
    ASSERT_FALSE(bytes.empty());
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << ranks << " ranks";
  }
  // Way 1: the kernel, taken out, times the inputs here. Way 2: the borrowing layer's output.
  Tensor query({DType::f32, {3, 64}}), image({DType::f32, {3, 64}});
  for (size_t i = 0; i < query.as<float>().size(); ++i) query.as<float>()[i] = static_cast<float>(i % 13) / 13.0f - 0.5f;
  write_npz(folder / "x.npz", {{"image", image}, {"query", query}});
  for (const std::string& target : {std::string(job), folder / "run2"}) {
    const std::string kernel_file = folder / "kernel.npy", output_file = folder / "similarity.npz";
    ASSERT_EQ(run_program("extract " + target + " image_embedding/kernel -o " + kernel_file).code, 0);
    const Outcome predicted = run_program("predict " + target + " --inputs " + (folder / "x.npz") + " --output " + output_file, 2);
    ASSERT_EQ(predicted.code, 0) << predicted.output;
    const Tensor kernel = read_npy(kernel_file), similarity = read_npz(output_file, "similarity");
    ASSERT_EQ(kernel.shape(), (Shape{256, 64}));
    ASSERT_EQ(similarity.shape(), (Shape{3, 256}));
    for (size_t row = 0; row < 3; ++row) {
      for (size_t unit = 0; unit < 256; ++unit) {
        double sum = 0;
        for (size_t i = 0; i < 64; ++i) sum += static_cast<double>(query.as<float>()[row * 64 + i]) * kernel.as<float>()[unit * 64 + i];
        EXPECT_NEAR(similarity.as<float>()[row * 256 + unit], sum, 1e-5);
      }
    }
  }
}

TEST(Reports, FiveLabelsInBatchesOfThreeOneWrongAreFourFifths) {
  const Folder folder;
  Tensor x({DType::f32, {5, 1}}), y({DType::i64, {5}});
  for (size_t i = 0; i < 5; ++i) x.as<float>()[i] = 1;
  y.as<int64_t>()[4] = 1;
  write_npy(folder / "x.npy", x);
  write_npy(folder / "y.npy", y);
  const std::string job = folder.write("job.yaml", R"(name: accuracy
model:
  inputs: [{name: x, shape: [1]}]
  layers:
    - {name: logits, type: Dense, units: 2, kernel_initializer: zeros, bias_initializer: zeros}
data:
  train: {format: npy, inputs: x.npy, targets: y.npy}
train:
  steps: 1
  global_batch: 3
  optimizer: sgd
  losses: {type: SparseCategoricalCrossentropy, from_logits: true}
  metrics: [accuracy]
)");
  for (const int ranks : {1, 2}) {
    const Outcome outcome = run_program("evaluate " + job + " --quiet", ranks);
    EXPECT_NE(outcome.output.find("\"samples\": 5"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("\"accuracy\": 0.8"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace lockstep::test
