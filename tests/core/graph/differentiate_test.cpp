#include <gtest/gtest.h>

#include "core/error/error.h"
#include "tests/core/ops/evaluate.h"

namespace lockstep {
namespace {

using Values = std::vector<double>;

TEST(Differentiate, AddsWhatFlowsThroughEveryUse) {
  Graph graph;
  const Symbol x = graph.input("x", {DType::f64, {2}});
  const Symbol y = ops::add(ops::multiply(x, x), ops::multiply(x, 3.0));  // x^2 + 3 x
  const Symbol dy = graph.constant(DType::f64, 1, {2});
  const Symbol dx = differentiate({&y, 1}, {&dy, 1}, {&x, 1})[0];
  Evaluation evaluation{{{"x", tensor_of(DType::f64, {2}, {1, -4})}}};
  EXPECT_EQ(values_of(evaluation.run(dx)), (Values{5, -5}));
}

TEST(Differentiate, SumsOverSeveralOutputs) {
  Graph graph;
  const Symbol x = graph.input("x", {DType::f64, {}});
  const std::vector<Symbol> outputs = {ops::multiply(x, 2.0), ops::multiply(x, 5.0)};
  const std::vector<Symbol> weights = {graph.constant(DType::f64, 1), graph.constant(DType::f64, 10)};
  const Symbol dx = differentiate(outputs, weights, {&x, 1})[0];
  Evaluation evaluation{{{"x", tensor_of(DType::f64, {}, {1})}}};
  EXPECT_EQ(values_of(evaluation.run(dx)), Values{52});
}

TEST(Differentiate, GivesNothingForWhatTheOutputsDoNotDependOn) {
  Graph graph;
  const std::vector<Symbol> inputs = {graph.input("x", {DType::f64, {}}), graph.input("unused", {DType::f64, {}})};
  const Symbol y = ops::square(inputs[0]);
  const Symbol one = graph.constant(DType::f64, 1);
  const std::vector<Symbol> gradients = differentiate({&y, 1}, {&one, 1}, inputs);
  EXPECT_TRUE(gradients[0].valid());
  EXPECT_FALSE(gradients[1].valid());
}

TEST(Differentiate, StopsAtStopGradientAndAtIntegers) {
  Graph graph;
  const Symbol x = graph.input("x", {DType::f64, {}});
  const Symbol y = ops::multiply(x, ops::stop_gradient(x));
  const Symbol z = ops::cast(ops::cast(x, DType::i32), DType::f64);
  const Symbol one = graph.constant(DType::f64, 1);
  const Symbol from_y = differentiate({&y, 1}, {&one, 1}, {&x, 1})[0];
  Evaluation evaluation{{{"x", tensor_of(DType::f64, {}, {3})}}};
  EXPECT_EQ(values_of(evaluation.run(from_y)), Values{3});
  EXPECT_FALSE(differentiate({&z, 1}, {&one, 1}, {&x, 1})[0].valid());
}

TEST(Differentiate, NodesOfTheGradientBelongToTheLayer) {
  Graph graph;
  const Symbol x = graph.input("x", {DType::f64, {}});
  Symbol y;
  {
    const LayerScope scope(graph, "tower/hidden");
    y = ops::tanh(x);
  }
  const Symbol one = graph.constant(DType::f64, 1);
  const Symbol dx = differentiate({&y, 1}, {&one, 1}, {&x, 1})[0];
  EXPECT_EQ(graph.nodes()[static_cast<size_t>(graph.value(dx.id()).node)].layer, "tower/hidden");
}

TEST(Differentiate, AGradientOfAGradientOpIsRefused) {
  Graph graph;
  const Symbol x = graph.input("x", {DType::f64, {}});
  const Symbol y = ops::tanh(x);
  const Symbol one = graph.constant(DType::f64, 1);
  const Symbol dx = differentiate({&y, 1}, {&one, 1}, {&x, 1})[0];
  EXPECT_THROW(differentiate({&dx, 1}, {&one, 1}, {&x, 1}), Error);
}

TEST(Differentiate, MakesTheSameNodesForEveryCountOfRows) {
  const auto names = [](int64_t rows) {
    Graph graph;
    const Symbol x = graph.input("x", {DType::f32, {rows, 3}});
    const std::vector<Symbol> weights = {graph.variable({"kernel", {DType::f32, {3, 3}}}), graph.variable({"bias", {DType::f32, {3}}}), graph.variable({"scale", {DType::f32, {1, 3}}})};
    const Symbol hidden = ops::relu(ops::dense(x, weights[0], weights[1]));
    const Symbol centred = ops::subtract(hidden, ops::mean(hidden, {0}, true));
    const Symbol loss = ops::sum(ops::softmax(ops::add(ops::multiply(centred, weights[2]), x)));
    const Symbol one = graph.constant(DType::f32, 1);
    differentiate({&loss, 1}, {&one, 1}, weights);
    std::vector<std::string> result;
    for (const Graph::Node& node : graph.nodes()) result.emplace_back(node.op->name());
    return result;
  };
  EXPECT_EQ(names(1), names(4));
  EXPECT_EQ(names(0), names(4));
}

}  // namespace
}  // namespace lockstep
