#include "tests/io/data/files.h"

namespace lockstep {

namespace {

const DataExpectation demo_model = model_of({{"keys", {10}, DType::i64}}, {{"logit", {1}}, {"vector", {10}}});

Value demo(int64_t samples) {
  return map({{"format", "synthetic"}, {"samples", samples}, {"inputs", map({{"keys", map({{"fill", "ones"}})}})}, {"targets", map({{"logit", map({{"random", "integer"}, {"low", 0}, {"high", 2}})}})}});
}

OpenedData opened(const Value& description, uint64_t seed = 7, const DataExpectation& model = demo_model) { return open_data(description, "data.train", model, seed); }

}  // namespace

TEST(Synthetic, FillsInputsAndDrawsTargets) {
  const OpenedData data = opened(demo(16384));
  EXPECT_EQ(data.rows->rows(), 16384);
  EXPECT_EQ(data.rows->columns()[0].row, (TensorType{DType::i64, {10}}));
  EXPECT_EQ(data.rows->columns()[1].row, (TensorType{DType::i64, {1}}));
  EXPECT_EQ(rows_of<int64_t>(*data.rows, 0, {16383}), std::vector<int64_t>(10, 1));
  const std::vector<int64_t> labels = all_of<int64_t>(*data.rows, 1);
  const int64_t ones = std::accumulate(labels.begin(), labels.end(), int64_t{0});
  EXPECT_NEAR(ones, 8192, 5 * 64);  // five standard deviations of 16384 even draws
  for (const int64_t label : labels) EXPECT_TRUE(label == 0 || label == 1);
}

// A changed value here changes every run on synthetic data.
TEST(Synthetic, DependsOnSeedRowAndElementAlone) {
  const std::vector<int64_t> first = rows_of<int64_t>(*opened(demo(64)).rows, 1, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(first, (std::vector<int64_t>{0, 1, 1, 0, 1, 1, 0, 0}));
  EXPECT_EQ(rows_of<int64_t>(*opened(demo(16384)).rows, 1, {0, 1, 2, 3, 4, 5, 6, 7}), first);
  EXPECT_EQ(rows_of<int64_t>(*opened(demo(64)).rows, 1, {7, 6})[0], first[7]);
  EXPECT_NE(all_of<int64_t>(*opened(demo(64), 8).rows, 1), all_of<int64_t>(*opened(demo(64)).rows, 1));
  EXPECT_EQ(opened(demo(64)).rows->fingerprint(), opened(demo(64)).rows->fingerprint());
  EXPECT_NE(opened(demo(64), 8).rows->fingerprint(), opened(demo(64)).rows->fingerprint());
  EXPECT_NE(opened(demo(65)).rows->fingerprint(), opened(demo(64)).rows->fingerprint());
}

TEST(Synthetic, DrawsUniformAndNormalValuesInTheWantedShape) {
  const DataExpectation model = model_of({{"x", {2}, DType::f32}}, {{"y", {3}}});
  const Value description = map({{"format", "synthetic"}, {"samples", 1000}, {"inputs", map({{"random", "uniform"}, {"low", -2}, {"high", 2}})}, {"targets", map({{"random", "normal"}, {"mean", 10}, {"stddev", 0.5}, {"shape", list({4})}, {"dtype", "float64"}})}, {"sample_weight", map({{"fill", 0.5}})}});
  const OpenedData data = opened(description, 1, model);
  EXPECT_EQ(data.rows->columns()[1].row, (TensorType{DType::f64, {4}}));
  EXPECT_EQ(data.rows->columns()[2].row, (TensorType{DType::f32, {}}));
  EXPECT_EQ(rows_of<float>(*data.rows, 2, {5}), (std::vector<float>{0.5f}));
  const std::vector<float> uniform = all_of<float>(*data.rows, 0);
  const std::vector<double> normal = all_of<double>(*data.rows, 1);
  for (const float value : uniform) EXPECT_TRUE(value >= -2 && value <= 2);
  // Five standard errors of the mean.
  EXPECT_NEAR(std::accumulate(uniform.begin(), uniform.end(), 0.0) / 2000, 0.0, 5 * std::sqrt(16.0 / 12 / 2000));
  EXPECT_NEAR(std::accumulate(normal.begin(), normal.end(), 0.0) / 4000, 10.0, 5 * 0.5 / std::sqrt(4000));
}

TEST(Synthetic, RefusesDescriptionsThatMeanNothing) {
  const auto with_input = [](Value input) { return map({{"format", "synthetic"}, {"samples", 4}, {"inputs", map({{"keys", std::move(input)}})}}); };
  const auto with = [&](std::string_view key, Value value) {
    Value description = demo(4);
    description.set(key, std::move(value));
    return description;
  };
  struct Case {
    Value description;
    std::string says;
  };
  const Case cases[] = {
      {with_input(map({{"fill", "twos"}})), "Y13 error[Y13] data.train.inputs.keys.fill: expected ones, zeros or a number"},
      {with_input(map({{"fill", 0.5}})), "Y13 error[Y13] data.train.inputs.keys: 0.5 is no int64"},
      {with_input(map({{"fill", 1}, {"random", "integer"}})), "Y13 error[Y13] data.train.inputs.keys: write either fill"},
      {with_input(map({{"fill", 1}, {"low", 1}})), "low and high belong to"},
      {with_input(map({{"random", "integer"}, {"high", 2}, {"mean", 1}})), "mean and stddev belong to"},
      {with_input(map({{"random", "integer"}})), "random: integer needs high"},
      {with_input(map({{"random", "integer"}, {"low", 2}, {"high", 2}})), "low (2) must be less than high (2)"},
      {with_input(map({{"random", "integer"}, {"high", 2.5}})), "must be integers"},
      {with_input(map({{"random", "normal"}})), "random: normal makes fractions, which int64 can't hold"},
      {with_input(map({{"random", "poisson"}})), "Y13 error[Y13] data.train.inputs.keys.random: unknown 'poisson'"},
      {with_input(map({{"fil", 1}})), "Y09 error[Y09] unknown key 'fil' in 'data.train.inputs.keys'; did you mean 'fill'?"},
      {with("samples", Value()), "Y11 error[Y11] 'data.train.samples' is required"},
      {with("path", "x.npy"), "Y10 error[Y10] 'data.train.path': synthetic data has no file"},
      {with("cast", map({{"keys", "int64"}})), "Y10 error[Y10] 'data.train.cast'"},
  };
  for (const Case& each : cases) {
    const std::string message = thrown_by([&] { opened(each.description); });
    EXPECT_NE(message.find(each.says), std::string::npos) << "expected " << each.says << "\nfound " << message;
  }
  const std::string open_axis = thrown_by([&] { opened(with_input(map({{"fill", 1}})), 7, model_of({{"keys", {-1}, DType::i64}})); });
  EXPECT_NE(open_axis.find("leaves an axis open; write shape: [...]"), std::string::npos) << open_axis;
}

}  // namespace lockstep
