#include "layers/losses/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;

void expect_near(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 2e-14 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

std::vector<double> values_of(const Value& identifier, const Tensor& y_true, const Tensor& y_pred) {
  Graph graph;
  return numbers(Evaluation().run(make_loss(identifier)->values(graph.constant(y_true), graph.constant(y_pred)).values));
}

// Predictions and targets of the golden numbers, which numpy computed from Keras's formulas in float64.
const Tensor probabilities = f64({3, 3}, {.2, .7, .3, .1, .3, .4, 0, 1, 0});
const Tensor logits = f64({3, 3}, {2, -1, .5, 0.3, .2, -4, 30, 0, -30});
const Tensor soft_targets = f64({3, 3}, {0, 1, 0, .2, .3, .5, 1, 0, 0});
const Tensor labels = i64({3}, {1, 2, 0});
const Tensor binary_probabilities = f64({3, 2}, {.2, .9, .5, 0, 1, .3});
const Tensor binary_logits = f64({3, 2}, {2, -1, .3, -4, 30, -30});
const Tensor binary_targets = f64({3, 2}, {0, 1, 1, 1, 0, .5});

TEST(CategoricalCrossentropy, HasKerassValues) {
  expect_near(values_of("categorical_crossentropy", soft_targets, probabilities), {0.538996500732687, 1.056710674519458, 16.11809565095832});
  expect_near(values_of(Map{{"type", "CategoricalCrossentropy"}, {"label_smoothing", 0.1}}, soft_targets, probabilities), {0.608998528362106, 1.076153539575896, 15.58082579925971});
  expect_near(values_of(Map{{"type", "CategoricalCrossentropy"}, {"from_logits", true}}, soft_targets, logits), {3.241311296657157, 2.831494620928544, 9.348077867343381e-14});
}

TEST(CategoricalCrossentropy, TakesClassesOnAnotherAxis) {
  Graph graph;
  const Symbol turned_targets = ops::transpose(graph.constant(soft_targets), {1, 0});
  for (const bool from_logits : {false, true}) {
    const auto loss = make_loss(Map{{"type", "CategoricalCrossentropy"}, {"axis", 0}, {"from_logits", from_logits}});
    const auto last = make_loss(Map{{"type", "CategoricalCrossentropy"}, {"from_logits", from_logits}});
    const Tensor& y = from_logits ? logits : probabilities;
    expect_near(numbers(Evaluation().run(loss->values(turned_targets, ops::transpose(graph.constant(y), {1, 0})).values)), numbers(Evaluation().run(last->values(graph.constant(soft_targets), graph.constant(y)).values)));
  }
}

TEST(SparseCategoricalCrossentropy, HasKerassValues) {
  expect_near(values_of("sparse_categorical_crossentropy", labels, probabilities), {0.538996500732687, 0.693147180559945, 16.118095750958314});
  expect_near(values_of(Map{{"type", "SparseCategoricalCrossentropy"}, {"from_logits", true}}, labels, logits), {3.241311296657157, 4.951494620928544, 9.348077867343381e-14});
  EXPECT_EQ(values_of("SparseCategoricalCrossentropy", i64({3, 1}, {1, 2, 0}), probabilities), values_of("SparseCategoricalCrossentropy", labels, probabilities));
  EXPECT_EQ(values_of("SparseCategoricalCrossentropy", f32({3}, {1, 2, 0}), probabilities), values_of("SparseCategoricalCrossentropy", labels, probabilities));
}

TEST(SparseCategoricalCrossentropy, LeavesAnIgnoredClassOut) {
  Graph graph;
  const auto loss = make_loss(Map{{"type", "SparseCategoricalCrossentropy"}, {"from_logits", true}, {"ignore_class", -1}});
  const Symbol prediction = graph.constant(logits);
  const LossValues values = loss->values(graph.constant(i64({3}, {1, -1, 0})), prediction);
  expect_near(numbers(Evaluation().run(values.values)), {3.241311296657157, 0, 9.348077867343381e-14});
  EXPECT_EQ(numbers(Evaluation().run(values.valid)), (std::vector<double>{1, 0, 1}));
  const LossTerm term = reduce_weighted(values, {}, loss->reduction, 3);
  EXPECT_EQ(numbers(Evaluation().run(term.divisor))[0], 2) << "only what is valid is counted";
  EXPECT_EQ(numbers(Evaluation().run(term.weight))[0], 2);
}

TEST(BinaryCrossentropy, HasKerassValues) {
  expect_near(values_of("binary_crossentropy", binary_targets, binary_probabilities), {0.164252033486018, 8.405621415759132, 8.449209762808506});
  expect_near(values_of(Map{{"type", "BinaryCrossentropy"}, {"from_logits", true}, {"label_smoothing", 0.2}}, binary_targets, binary_logits), {1.570094849280598, 2.101252586193168, 21.000000000000092});
}

TEST(BinaryCrossentropy, TakesTargetsWithoutTheLastAxis) {
  const Tensor prediction = f64({2, 1}, {0.25, 0.5});
  expect_near(values_of("binary_crossentropy", i64({2}, {1, 0}), prediction), {-std::log(0.25), -std::log(0.5)});
  EXPECT_EQ(values_of("binary_crossentropy", i64({2}, {1, 0}), prediction), values_of("binary_crossentropy", i64({2, 1}, {1, 0}), prediction));
}

TEST(MeanErrors, HaveKerassValues) {
  expect_near(values_of("mse", binary_targets, binary_probabilities), {0.025, 0.625, 0.52});
  expect_near(values_of("MeanAbsoluteError", binary_targets, binary_probabilities), {0.15, 0.75, 0.6});
}

TEST(Losses, OfProbabilitiesAreComputedFromTheLogitsBehindThem) {
  Graph graph;
  // The second class's probability is below what clipping keeps: exp(-40).
  const Symbol x = graph.constant(f64({1, 2}, {40, 0}));
  const Symbol target = graph.constant(f64({1, 2}, {0, 1}));
  const Symbol softmax = ops::softmax(x);
  EXPECT_DOUBLE_EQ(numbers(Evaluation().run(make_loss("categorical_crossentropy")->values(target, softmax).values))[0], 40);
  EXPECT_DOUBLE_EQ(numbers(Evaluation().run(make_loss("sparse_categorical_crossentropy")->values(graph.constant(i64({1}, {1})), softmax).values))[0], 40);
  const Symbol sigmoid = ops::sigmoid(graph.constant(f64({1, 1}, {-40})));
  EXPECT_DOUBLE_EQ(numbers(Evaluation().run(make_loss("binary_crossentropy")->values(graph.constant(f64({1, 1}, {1})), sigmoid).values))[0], 40);
}

TEST(Losses, TellTargetsThatDoNotFit) {
  const std::string one_hot = thrown([] { values_of("sparse_categorical_crossentropy", soft_targets, probabilities); });
  EXPECT_NE(one_hot.find("for one-hot targets use categorical_crossentropy"), std::string::npos) << one_hot;
  EXPECT_NE(thrown([] { values_of("mse", f64({3, 4}, std::vector<double>(12)), probabilities); }).find("needs targets of the output's shape, (3, 3), got (3, 4)"), std::string::npos);
  EXPECT_NE(thrown([] { make_loss("categorial_crossentropy"); }).find("did you mean 'categorical_crossentropy'?"), std::string::npos);
  EXPECT_NE(thrown([] { make_loss(Map{{"type", "MeanSquaredError"}, {"reduction", "none"}}); }).find("leaves no number to minimize"), std::string::npos);
}

TEST(Losses, ReadAndWriteKerassForm) {
  const Value keras(Map{{"module", "keras.losses"}, {"class_name", "CategoricalCrossentropy"}, {"config", Map{{"name", "cce"}, {"reduction", "sum"}, {"from_logits", true}, {"label_smoothing", 0.0}, {"axis", -1}}}, {"registered_name", Value()}});
  EXPECT_EQ(to_keras(*make_loss(keras)), keras);
  const auto keras2 = make_loss(Map{{"class_name", "BinaryCrossentropy"}, {"config", Map{{"reduction", "auto"}, {"name", "binary_crossentropy"}, {"from_logits", false}, {"label_smoothing", 0.0}, {"axis", -1}}}});
  EXPECT_EQ(keras2->reduction, "sum_over_batch_size");
  for (const std::string& type : loss_types()) EXPECT_EQ(make_loss(type)->type(), type);
}

struct Reduced {
  double numerator, divisor, weight;
};

Reduced reduced(const Tensor& values, const Tensor* weight, const char* reduction, int64_t global_rows) {
  Graph graph;
  const LossTerm term = reduce_weighted({graph.constant(values), {}}, weight ? graph.constant(*weight) : Symbol(), reduction, global_rows);
  Evaluation evaluation;
  return {numbers(evaluation.run(term.numerator))[0], numbers(evaluation.run(term.divisor))[0], numbers(evaluation.run(term.weight))[0]};
}

TEST(Reduction, DividesByTheElementsOfAllReplicas) {
  const Tensor values = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Reduced plain = reduced(values, nullptr, "sum_over_batch_size", 5);
  EXPECT_EQ(plain.numerator, 21);
  EXPECT_EQ(plain.divisor, 15);
  EXPECT_EQ(plain.weight, 6);
  const Tensor weight = f32({2}, {2, 0});
  const Reduced weighted = reduced(values, &weight, "mean", 5);
  EXPECT_EQ(weighted.numerator, 12);
  EXPECT_EQ(weighted.divisor, 15) << "whatever the weights are";
}

TEST(Reduction, DividesByTheSumOfWeightsWhereAsked) {
  const Tensor values = f32({3}, {1, 2, 3});
  const Tensor weight = f32({3, 1}, {2, 0, 1});
  const Reduced weighted = reduced(values, &weight, "mean_with_sample_weight", 3);
  EXPECT_EQ(weighted.numerator, 5);
  EXPECT_EQ(weighted.divisor, 3);
  EXPECT_EQ(reduced(values, nullptr, "mean_with_sample_weight", 7).divisor, 7);
  EXPECT_EQ(reduced(values, &weight, "sum", 7).divisor, 1);
  const Tensor wrong = f32({2}, {1, 1});
  EXPECT_NE(thrown([&] { reduced(values, &wrong, "sum", 3); }).find("sample weights are (2,), the losses (3,)"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
