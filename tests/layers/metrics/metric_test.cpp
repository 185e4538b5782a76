#include "layers/metrics/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;

std::vector<double> state_of(const Value& identifier, const Tensor& y_true, const Tensor& y_pred, const Tensor* weight = nullptr) {
  Graph graph;
  const auto metric = make_metric(identifier, y_true.shape(), y_pred.shape());
  return numbers(Evaluation().run(metric->state(graph.constant(y_true), graph.constant(y_pred), weight ? graph.constant(*weight) : Symbol())));
}

TEST(Metric, ChoosesTheAccuracyByTheShapesOfTargetAndOutput) {
  EXPECT_EQ(make_metric("accuracy", {8, 1}, {8, 1})->type(), "BinaryAccuracy");
  EXPECT_EQ(make_metric("acc", {8}, {8, 1})->type(), "BinaryAccuracy");
  EXPECT_EQ(make_metric("accuracy", {8}, {8, 10})->type(), "SparseCategoricalAccuracy");
  EXPECT_EQ(make_metric("accuracy", {8, 1}, {8, 10})->type(), "SparseCategoricalAccuracy");
  EXPECT_EQ(make_metric("accuracy", {8, 10}, {8, 10})->type(), "CategoricalAccuracy");
  EXPECT_EQ(make_metric("acc", {8, 10}, {8, 10})->name, "acc");
  EXPECT_EQ(make_metric(Map{{"class_name", "Accuracy"}, {"config", Map{{"name", "exact"}, {"dtype", "float32"}}}}, {8}, {8})->name, "exact");
}

TEST(Metric, CountsHits) {
  EXPECT_EQ(state_of("accuracy", i64({3}, {0, 1, 1}), f32({3, 1}, {0.2f, 0.5f, 0.8f})), (std::vector<double>{2, 3})) << "0.5 is not above the threshold";
  EXPECT_EQ(state_of("accuracy", i64({4}, {2, 0, 1, 1}), f32({4, 3}, {0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1})), (std::vector<double>{3, 4})) << "the first of equal predictions counts";
  EXPECT_EQ(state_of("accuracy", f32({2, 2}, {1, 0, 0, 1}), f32({2, 2}, {0.6f, 0.4f, 0.7f, 0.3f})), (std::vector<double>{1, 2}));
  EXPECT_EQ(state_of(Map{{"type", "BinaryAccuracy"}, {"threshold", 0.75}}, f32({2, 1}, {0, 1}), f32({2, 1}, {0.7f, 0.8f})), (std::vector<double>{2, 2}));
}

TEST(Metric, TakesTheMeanOverThePlacesOfASample) {
  // Two places a sample: one of two right, both right.
  EXPECT_EQ(state_of("accuracy", i64({2, 2}, {0, 1, 1, 0}), f32({2, 2, 2}, {1, 0, 1, 0, 0, 1, 1, 0})), (std::vector<double>{1.5, 2}));
}

TEST(Metric, WeighsSamples) {
  const Tensor weight = f32({3}, {2, 0, 0.5});
  EXPECT_EQ(state_of("mse", f32({3, 1}, {0, 0, 0}), f32({3, 1}, {1, 5, 2}), &weight), (std::vector<double>{4, 2.5}));
}

TEST(Metric, ReadsItsResultFromAddedStates) {
  const std::vector<double> state = {8, 2}, nothing = {0, 0};
  EXPECT_EQ(make_metric("mse", {2, 1}, {2, 1})->result(state), 4);
  EXPECT_EQ(make_metric("RootMeanSquaredError", {2, 1}, {2, 1})->result(state), 2);
  EXPECT_EQ(make_metric("accuracy", {2, 1}, {2, 1})->result(nothing), 0);
}

TEST(Metric, OfALossLeavesIgnoredPlacesOut) {
  const Value ignoring(Map{{"type", "SparseCategoricalCrossentropy"}, {"ignore_class", 0}});
  const std::vector<double> state = state_of(ignoring, i64({2}, {1, 0}), f64({2, 2}, {0.75, 0.25, 0.5, 0.5}));
  EXPECT_NEAR(state[0], -std::log(0.25), 1e-12);
  EXPECT_EQ(state[1], 1);
}

TEST(Metric, ReadsAndWritesKerassForm) {
  for (const std::string& type : metric_types()) {
    const Value written = to_keras(*make_metric(Map{{"type", type}}, {4, 3}, {4, 3}));
    EXPECT_EQ(written.at("class_name"), Value(type));
    EXPECT_EQ(to_keras(*make_metric(written, {4, 3}, {4, 3})), written);
  }
  EXPECT_NE(thrown([] { make_metric("acuracy", {1}, {1}); }).find("unknown metric 'acuracy'; did you mean"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
