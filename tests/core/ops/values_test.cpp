#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error/error.h"
#include "core/ops/dense.h"
#include "core/ops/replica.h"
#include "tests/core/ops/evaluate.h"

namespace lockstep {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A graph with one f64 input "x", and what a function makes of it.
struct OneInput {
  Graph graph;
  Symbol x;
  Evaluation evaluation;

  OneInput(Shape shape, std::vector<double> values, DType dtype = DType::f64) : x(graph.input("x", {dtype, shape})) { evaluation.feeds["x"] = tensor_of(dtype, shape, std::move(values)); }
  std::vector<double> values(Symbol y) { return values_of(evaluation.run(y)); }
  Symbol constant(Shape shape, std::vector<double> values, DType dtype = DType::f64) { return graph.constant(tensor_of(dtype, std::move(shape), std::move(values))); }
};

using Values = std::vector<double>;

TEST(Values, SoftmaxCrossEntropyOfEqualLogitsIsTheLogarithmOfTheClasses) {
  OneInput given({2, 4}, {0, 0, 0, 0, 1000, 0, 0, 0});
  const Symbol targets = given.constant({2, 4}, {0, 1, 0, 0, 1, 0, 0, 0});
  const Symbol loss = ops::softmax_cross_entropy(given.x, targets);
  EXPECT_EQ(given.values(loss), (Values{std::log(4.0), 0}));
  const Symbol dy = given.constant({2}, {1, 2});
  const Symbol dx = differentiate({&loss, 1}, {&dy, 1}, {&given.x, 1})[0];
  EXPECT_EQ(given.values(dx), (Values{0.25, -0.75, 0.25, 0.25, 0, 0, 0, 0}));
}

TEST(Values, ATargetOfZeroMakesAnInfiniteLogitHarmless) {
  OneInput given({1, 3}, {-infinity, 0, 0});
  EXPECT_EQ(given.values(ops::softmax_cross_entropy(given.x, given.constant({1, 3}, {0, 1, 0}))), (Values{std::log(2.0)}));
}

TEST(Values, SparseLabelsCountAsOneHotOnesAndStrangeLabelsShow) {
  OneInput given({2, 3}, {1, 2, 3, 1, 2, 3});
  const Values loss = given.values(ops::sparse_softmax_cross_entropy(given.x, given.constant({2}, {2, 3}, DType::i32)));
  EXPECT_DOUBLE_EQ(loss[0], std::log(1 + std::exp(-1.0) + std::exp(-2.0)));
  EXPECT_TRUE(std::isnan(loss[1]));
}

TEST(Values, SigmoidCrossEntropyStaysFiniteForLargeLogits) {
  OneInput given({4}, {0, 1000, -1000, 1000});
  EXPECT_EQ(given.values(ops::sigmoid_cross_entropy(given.x, given.constant({4}, {1, 1, 0, 0}))), (Values{std::log(2.0), 0, 0, 1000}));
}

TEST(Values, DivideNoNanIsZeroWhereTheDivisorIsZero) {
  OneInput given({3}, {1, 0, 6});
  EXPECT_EQ(given.values(ops::divide_no_nan(given.x, given.constant({3}, {0, 0, 3}))), (Values{0, 0, 2}));
}

TEST(Values, PowerHasAGradientAtZero) {
  OneInput given({3}, {0, 2, -3});
  const Symbol exponent = given.graph.input("exponent", {DType::f64, {}});
  given.evaluation.feeds["exponent"] = tensor_of(DType::f64, {}, {2});
  const Symbol y = ops::sum(ops::power(given.x, exponent));
  const Symbol one = given.graph.constant(DType::f64, 1);
  const std::vector<Symbol> wanted = {given.x, exponent};
  const std::vector<Symbol> gradients = differentiate({&y, 1}, {&one, 1}, wanted);
  EXPECT_EQ(given.values(gradients[0]), (Values{0, 4, -6}));
  EXPECT_EQ(given.values(gradients[1]), (Values{4 * std::log(2.0)}));
}

TEST(Values, NotANumberSpreadsThroughMaximumReluAndMax) {
  const double nan = std::nan("");
  OneInput given({2}, {nan, 1});
  EXPECT_TRUE(std::isnan(given.values(ops::maximum(given.x, given.constant({}, {0})))[0]));
  EXPECT_TRUE(std::isnan(given.values(ops::maximum(given.constant({}, {0}), given.x))[0]));
  EXPECT_TRUE(std::isnan(given.values(ops::relu(given.x))[0]));
  EXPECT_TRUE(std::isnan(given.values(ops::max(given.x))[0]));
  EXPECT_EQ(given.values(ops::is_finite(given.x)), (Values{0, 1}));
}

TEST(Values, ReductionsOfNothing) {
  OneInput given({0, 2}, {});
  EXPECT_EQ(given.values(ops::sum(given.x, {0})), (Values{0, 0}));
  EXPECT_EQ(given.values(ops::mean(given.x, {0})), (Values{0, 0}));
  EXPECT_EQ(given.values(ops::max(given.x, {0})), (Values{-infinity, -infinity}));
  EXPECT_EQ(given.values(ops::min(given.x)), (Values{infinity}));
}

TEST(Values, AProductOverAnEmptyAxisIsZero) {
  OneInput given({2, 0}, {});
  EXPECT_EQ(given.values(ops::matmul(given.x, given.constant({0, 3}, {}))), Values(6, 0.0));
  EXPECT_EQ(given.values(ops::dense(given.x, given.constant({0, 1}, {}), given.constant({1}, {5}))), Values(2, 5.0));
}

TEST(Values, EqualMaximaShareTheGradientAndPoolingGivesItToTheFirst) {
  OneInput given({1, 2, 2, 1}, {3, 3, 1, 3});
  const Symbol one = given.graph.constant(DType::f64, 1);
  const Symbol largest = ops::max(given.x);
  EXPECT_EQ(given.values(differentiate({&largest, 1}, {&one, 1}, {&given.x, 1})[0]), (Values{1.0 / 3, 1.0 / 3, 0, 1.0 / 3}));
  const Symbol pooled = ops::sum(ops::max_pool2d(given.x, ops::Window2D::of(given.x.shape(), {2, 2}, {2, 2}, {1, 1}, false)));
  EXPECT_EQ(given.values(differentiate({&pooled, 1}, {&one, 1}, {&given.x, 1})[0]), (Values{1, 0, 0, 0}));
}

TEST(Values, ALongSumOfF32KeepsItsDigits) {
  // Adding one after the other is off by 1e-2 here.
  const int64_t n = 1 << 20;
  OneInput given({n}, Values(static_cast<size_t>(n), 0.1), DType::f32);
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  EXPECT_NEAR(given.values(ops::sum(given.x))[0], exact, exact * 1e-5);
  EXPECT_NEAR(given.values(ops::sum(ops::reshape(given.x, {n / 2, 2}), {0}))[1], exact / 2, exact * 5e-5);
}

TEST(Values, SamePaddingPutsTheOddCellAtTheEnd) {
  const ops::Window2D window = ops::Window2D::of({1, 5, 6, 1}, {2, 3}, {1, 2}, {1, 1}, true);
  EXPECT_EQ(window.pad_before[0], 0);
  EXPECT_EQ(window.pad_after[0], 1);
  EXPECT_EQ(window.pad_before[1], 0);
  EXPECT_EQ(window.pad_after[1], 1);
  EXPECT_EQ(window.output(0, 5), 5);
  EXPECT_EQ(window.output(1, 6), 3);
}

TEST(Values, SparsemaxIsThatOfKeras) {
  // keras.activations.sparsemax([[1.0, 0.75, -1.0]]): running sums 1 and 1.75 of the two supported values, tau = (1 + 1.75 - 1) / 2.
  OneInput given({1, 3}, {1.0, 0.75, -1.0});
  EXPECT_EQ(given.values(ops::sparsemax(given.x)), (Values{0.125, 0, 0}));
}

TEST(Values, TheFullReluFollowsItsFourPieces) {
  OneInput given({4}, {-1.5, 0.25, 2, 7});
  const Values found = given.values(ops::relu(given.x, 0.1, 4.0, 0.5));
  EXPECT_DOUBLE_EQ(found[0], -0.2);
  EXPECT_DOUBLE_EQ(found[1], -0.025);
  EXPECT_DOUBLE_EQ(found[2], 2);
  EXPECT_DOUBLE_EQ(found[3], 4);
}

TEST(Values, CastTruncatesTowardsZero) {
  OneInput given({3}, {-1.75, 1.75, 0.25});
  EXPECT_EQ(given.values(ops::cast(given.x, DType::i32)), (Values{-1, 1, 0}));
  EXPECT_EQ(given.values(ops::cast(given.x, DType::boolean)), (Values{1, 1, 1}));
}

TEST(Values, TheFirstOfEqualMaximaIsTheArgmax) {
  OneInput given({2, 3}, {1, 3, 3, 2, 2, 0});
  EXPECT_EQ(given.values(ops::argmax(given.x)), (Values{1, 0}));
  EXPECT_EQ(given.values(ops::argmax(given.x, 0)), (Values{1, 0, 0}));
}

TEST(Values, AnIndexOutsideTheTableGivesNotANumberAndNoGradient) {
  OneInput given({2, 1}, {5, 6});
  const Symbol rows = ops::gather_rows(given.x, given.constant({4}, {1, -1, 2, 1}, DType::i32));
  const Values found = given.values(rows);
  EXPECT_EQ(found[0], 6);
  EXPECT_TRUE(std::isnan(found[1]));
  EXPECT_TRUE(std::isnan(found[2]));
  const Symbol dy = given.constant({4, 1}, {1, 1, 1, 1});
  EXPECT_EQ(given.values(differentiate({&rows, 1}, {&dy, 1}, {&given.x, 1})[0]), (Values{0, 2}));
}

TEST(Dropout, DependsOnTheRowOfTheGlobalBatchAndNotOnTheReplica) {
  OneInput whole({4, 5}, Values(20, 1.0));
  whole.evaluation.replica.rows = {0, 4};
  const Values all = whole.values(ops::dropout(whole.x, 0.5, 7));
  OneInput part({2, 5}, Values(10, 1.0));
  part.evaluation.replica.rows = {2, 4};
  EXPECT_EQ(part.values(ops::dropout(part.x, 0.5, 7)), Values(all.begin() + 10, all.end()));
  for (const double value : all) EXPECT_TRUE(value == 0 || value == 2);
  whole.evaluation.step.step = 1;
  EXPECT_NE(whole.values(ops::dropout(whole.x, 0.5, 7)), all);
}

TEST(Dropout, ANoiseShapeSharesDraws) {
  OneInput given({8, 3, 2}, Values(48, 1.0));
  const Values rows = given.values(ops::dropout(given.x, 0.5, 7, {-1, 1, 1}));
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(rows[i], rows[i / 6 * 6]);
  const Values columns = given.values(ops::dropout(given.x, 0.5, 7, {1, 3, 1}));
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(columns[i], columns[i % 6 / 2 * 2]);
  EXPECT_NE(std::count(rows.begin(), rows.end(), 0.0), 0);
  EXPECT_NE(std::count(rows.begin(), rows.end(), 2.0), 0);
}

TEST(Dropout, KeepsAboutItsShare) {
  OneInput given({100, 100}, Values(10000, 1.0));
  const Values found = given.values(ops::dropout(given.x, 0.3, 7));
  // Six standard deviations of a binomial count.
  EXPECT_NEAR(static_cast<double>(std::count(found.begin(), found.end(), 0.0)), 3000, 6 * std::sqrt(10000 * 0.3 * 0.7));
}

TEST(Effects, PrintFillsInItsNamesEverySoManySteps) {
  OneInput given({1}, {4});
  Evaluation& evaluation = given.evaluation;
  evaluation.replica = {2, 4, 1, {0, 1}, "cpu:1"};
  const LayerScope scope(given.graph, "tower/say");
  const Symbol y = ops::print(given.x, "{replica} of {replicas} on {rank} at {step} {other}", 3);
  for (evaluation.step.step = 0; evaluation.step.step < 5; ++evaluation.step.step) EXPECT_EQ(given.values(y), Values{4});
  ASSERT_EQ(evaluation.step.printed.size(), 2u);
  EXPECT_EQ(evaluation.step.printed[1].text, "2 of 4 on 1 at 3 {other}");
  EXPECT_EQ(evaluation.step.printed[1].layer, "tower/say");
  EXPECT_EQ(evaluation.step.printed[1].replica, 2);
  evaluation.step.warm_up = true;
  given.values(y);
  EXPECT_EQ(evaluation.step.printed.size(), 3u);
}

TEST(Effects, AProbeRecordsWhatItSaw) {
  OneInput given({2}, {1, 2}, DType::f32);
  given.evaluation.replica = {3, 4, 1, {0, 2}, "cpu:1"};
  given.values(ops::liveness_probe(given.x, "image_embedding"));
  ASSERT_EQ(given.evaluation.step.records.size(), 1u);
  const LivenessRecord& record = given.evaluation.step.records[0];
  EXPECT_EQ(record.replica, 3);
  EXPECT_EQ(record.rank, 1);
  EXPECT_EQ(record.device, "cpu:1");
  EXPECT_EQ(record.layer, "image_embedding");
  EXPECT_EQ(record.type, (TensorType{DType::f32, {2}}));
  EXPECT_EQ(record.hash, hash_of(given.evaluation.feeds["x"].bytes()));
}

TEST(Effects, ASumOverReplicasHasNoKernelOfItsOwn) { EXPECT_THROW(ops::ReplicaSumOp().kernel({}), Error); }

TEST(Fusion, DenseWithReluIsReluOfDense) {
  OneInput given({3, 4}, {1, -2, 3, -4, 5, -6, 7, -8, 9, -1, 2, -3});
  const Symbol kernel = given.constant({4, 2}, {1, -1, 2, -2, 3, -3, 4, -4});
  const Symbol bias = given.constant({2}, {1, 2});
  const Symbol plain = ops::dense(given.x, kernel, bias);
  const auto& node = given.graph.nodes()[static_cast<size_t>(given.graph.value(plain.id()).node)];
  const std::shared_ptr<const Op> fused = ops::fused_with_relu(*node.op);
  const std::vector<Symbol> inputs = {given.x, kernel, bias};
  EXPECT_EQ(given.values(given.graph.add(fused, inputs)[0]), given.values(ops::relu(plain)));
  EXPECT_EQ(ops::fused_with_relu(*fused), nullptr);
}

/// The message of what `make` throws.
template <class Make>
std::string message_of(Make make) {
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Shapes, WrongArgumentsAreNamedWithTheirLayer) {
  Graph graph;
  const LayerScope scope(graph, "tower");
  const auto input = [&](Shape shape, DType dtype = DType::f32) { return graph.constant(Tensor({dtype, std::move(shape)})); };
  EXPECT_EQ(message_of([&] { ops::matmul(input({32, 8}), input({10, 4})); }), "error[M03] tower: matmul: the inner sizes differ: (32, 8) x (10, 4)");
  EXPECT_EQ(message_of([&] { ops::dense(input({32, 8}), input({8, 4}), input({5})); }), "error[M03] tower: dense: expected a bias of shape (4,), found (5,)");
  EXPECT_EQ(message_of([&] { ops::add(input({2, 3}), input({4})); }), "error[M03] tower: add: the shapes do not broadcast: (2, 3) and (4,)");
  EXPECT_EQ(message_of([&] { ops::add(input({2}), input({2}, DType::f64)); }), "error[M04] tower: add: the dtypes differ: float32 (2,) and float64 (2,); cast one");
  EXPECT_EQ(message_of([&] { ops::exp(input({2}, DType::i64)); }), "error[M04] tower: exp: expected floating-point values, found int64 (2,); cast first");
  EXPECT_EQ(message_of([&] { ops::sum(input({2, 3}), {2}); }), "error[M03] tower: sum: axis 2 does not exist in shape (2, 3), which has 2 axes");
  EXPECT_EQ(message_of([&] { ops::reshape(input({2, 3}), {4, -1}); }), "error[M03] tower: reshape: (2, 3) has 6 elements, which do not fill (4, -1)");
  EXPECT_EQ(message_of([&] { ops::conv2d(input({1, 4, 4, 3}), input({3, 3, 2, 8}), ops::Window2D::of({1, 4, 4, 3}, {3, 3}, {1, 1}, {1, 1}, false)); }),
            "error[M03] tower: conv2d: 3 channels in 1 groups need a kernel of 3 channels, found (3, 3, 2, 8)");
}

}  // namespace
}  // namespace lockstep
