#include <gtest/gtest.h>

#include <numeric>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using List = Value::List;
using Map = Value::Map;

void expect_near(const std::vector<double>& values, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

LayerContext::Settings f64_settings(bool training, int semantics = 3) {
  LayerContext::Settings settings;
  settings.training = training;
  settings.semantics = semantics;
  settings.dtype_policy = "float64";
  return settings;
}

/// Calls several layers in one trace, as the layers of a model.
struct Trace {
  explicit Trace(LayerContext::Settings settings = {}) : context(graph, weights, settings) {}

  Graph graph;
  WeightList weights;
  LayerContext context;
};

TEST(Policies, AreReadFromNamesAndFromWhatKerasWrites) {
  EXPECT_EQ(policy_of({}).compute, DType::f32);
  EXPECT_EQ(policy_of("mixed_float16").compute, DType::f16);
  EXPECT_EQ(policy_of("mixed_float16").variable, DType::f32);
  EXPECT_EQ(policy_of("float64").variable, DType::f64);
  const Value keras3(Map{{"module", "keras"}, {"class_name", "DTypePolicy"}, {"config", Map{{"name", "mixed_bfloat16"}}}, {"registered_name", Value()}});
  EXPECT_EQ(policy_of(keras3).compute, DType::bf16);
  const Value keras2(Map{{"class_name", "Policy"}, {"config", Map{{"name", "mixed_float16"}}}});
  EXPECT_EQ(policy_of(keras2).compute, DType::f16);
  EXPECT_NE(thrown([] { policy_of("mixed_float61"); }).find("did you mean 'mixed_float16'?"), std::string::npos);
}

TEST(Context, NamesWeightsByTheLayersAroundThem) {
  struct Tower final : Layer {
    std::string_view type() const override { return "Tower"; }
    void fields(Fields&) override {}
    std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override { return context.call(*inner, inputs); }
    std::unique_ptr<Layer> inner = layer_from("Dense", Map{{"units", 2}}, "hidden");
  } tower;
  tower.name = "tower";
  tower.trainable = false;
  TracedLayer traced(tower, {{DType::f32, {3, 4}}});
  ASSERT_EQ(traced.weights.all().size(), 2u);
  const Weight& kernel = traced.weights.all()[0];
  EXPECT_EQ(kernel.variable.path, "tower/hidden/kernel");
  EXPECT_EQ(kernel.layer, "tower/hidden");
  EXPECT_EQ(kernel.name, "kernel");
  EXPECT_FALSE(kernel.variable.trainable) << "a frozen layer freezes those inside it";
  EXPECT_EQ(traced.weights.all()[1].variable.path, "tower/hidden/bias");
}

TEST(Context, SharesTheWeightsOfALayerThatIsCalledTwice) {
  Trace trace;
  const auto dense = layer_from("Dense", Map{{"units", 2}}, "dense");
  const Symbol x = trace.graph.input("x", {DType::f32, {3, 4}});
  trace.context.call(*dense, {&x, 1});
  trace.context.call(*dense, {&x, 1});
  EXPECT_EQ(trace.weights.all().size(), 2u);
  const Symbol wider = trace.graph.input("wider", {DType::f32, {3, 5}});
  EXPECT_NE(thrown([&] { trace.context.call(*dense, {&wider, 1}); }).find("error[M12] dense: weight 'kernel' is float32 (4, 2), but this call needs float32 (5, 2)"), std::string::npos);
}

TEST(Context, GivesEachCallOfALayerItsOwnRandomStream) {
  struct Draw final : Layer {
    std::string_view type() const override { return "Draw"; }
    void fields(Fields&) override {}
    std::vector<Symbol> call(LayerContext& context, std::span<const Symbol>) override {
      streams.push_back(context.random_stream());
      return {};
    }
    std::vector<uint64_t> streams;
  } one, two;
  one.name = "one";
  two.name = "two";
  for (int trace = 0; trace < 2; ++trace) {
    Trace t;
    t.context.call(one, {});
    t.context.call(one, {});
    t.context.call(two, {});
  }
  EXPECT_NE(one.streams[0], one.streams[1]);
  EXPECT_NE(one.streams[0], two.streams[0]);
  EXPECT_EQ(one.streams[0], one.streams[2]) << "another trace of the same model draws the same";
  EXPECT_EQ(one.streams[1], one.streams[3]);
}

TEST(Context, AddsActivityRegularisationDividedByTheGlobalRows) {
  LayerContext::Settings settings = f64_settings(true);
  Trace trace(settings);
  const auto layer = layer_from("Identity", Map{{"activity_regularizer", Map{{"type", "L2"}, {"l2", 0.5}}}});
  LayerContext::Settings global = settings;
  global.global_rows = 8;
  global.rows = 2;
  LayerContext context(trace.graph, trace.weights, global);
  const Symbol x = trace.graph.input("x", {DType::f64, {2, 2}});
  context.call(*layer, {&x, 1});
  ASSERT_EQ(context.losses().size(), 1u);
  Evaluation evaluation;
  evaluation.feeds["x"] = f64({2, 2}, {1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(numbers(evaluation.run(context.losses()[0]))[0], 0.5 * 30 / 8);
}

TEST(Borrowing, UsesAnotherLayersKernelTransposed) {
  Trace trace(f64_settings(false));
  const auto owner = layer_from("Dense", Map{{"units", 2}}, "image_embedding");
  const auto borrower = layer_from("Dense", Map{{"use_bias", false}, {"borrow", Map{{"kernel", "image_embedding/kernel"}, {"transposed", true}}}}, "product");
  const Symbol x = trace.graph.input("x", {DType::f64, {1, 3}});
  const Symbol hidden = trace.context.call(*owner, {&x, 1})[0];
  const Symbol y = trace.context.call(*borrower, {&hidden, 1})[0];
  EXPECT_EQ(y.shape(), (Shape{1, 3}));
  EXPECT_EQ(trace.weights.all().size(), 2u) << "one variable, in one place";
  Evaluation evaluation;
  evaluation.feeds["x"] = f64({1, 3}, {1, 0, 0});
  evaluation.feeds["image_embedding/kernel"] = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  evaluation.feeds["image_embedding/bias"] = f64({2}, {0, 0});
  EXPECT_EQ(numbers(evaluation.run(y)), (std::vector<double>{5, 11, 17}));
}

TEST(Borrowing, TellsWhatDoesNotFit) {
  Trace trace;
  const auto owner = layer_from("Dense", Map{{"units", 2}}, "owner");
  const Symbol x = trace.graph.input("x", {DType::f32, {1, 3}});
  const Symbol hidden = trace.context.call(*owner, {&x, 1})[0];
  const auto message = [&](Map borrow, const char* type = "Dense") {
    const auto borrower = layer_from(type, Map{{"units", 3}, {"borrow", std::move(borrow)}}, "out");
    return thrown([&] { trace.context.call(*borrower, {&hidden, 1}); });
  };
  EXPECT_NE(message({{"kernel", "owner/kernel"}}).find("error[Y36] out: borrows 'owner/kernel', which is (3, 2), but needs (2, 3); set transposed: true?"), std::string::npos) << message({{"kernel", "owner/kernel"}});
  EXPECT_NE(message({{"kernel", "ownr/kernel"}}).find("did you mean 'owner/kernel'?"), std::string::npos);
  EXPECT_NE(message({{"kernl", "owner/kernel"}}).find("out has no weight 'kernl' to borrow; did you mean 'kernel'?"), std::string::npos);
  EXPECT_NE(message({{"bias", "owner/bias"}}).find("borrows 'owner/bias', which is (2,), but needs (3,) for 'bias'"), std::string::npos);
}

TEST(Dense, NeedsItsUnitsUnlessTheKernelIsBorrowed) {
  const auto dense = layer_from("Dense", Map{});
  EXPECT_NE(thrown([&] { TracedLayer(*dense, {{DType::f32, {2, 3}}}); }).find("'units' is required"), std::string::npos);
}

TEST(Configs, RefuseWhatLockstepDoesNotApply) {
  const std::string constraint = thrown([] { layer_from("Dense", Map{{"units", 2}, {"kernel_constraint", Map{{"class_name", "MaxNorm"}, {"config", Map{}}}}}); });
  EXPECT_NE(constraint.find("kernel_constraint: found 'MaxNorm'"), std::string::npos) << constraint;
  EXPECT_NE(thrown([] { layer_from("Embedding", Map{{"input_dim", 2}, {"output_dim", 2}, {"mask_zero", true}}); }).find("mask_zero: found true"), std::string::npos);
  EXPECT_NE(thrown([] { layer_from("Flatten", Map{{"data_format", "channels_first"}}); }).find("must be \"channels_last\""), std::string::npos);
}

TEST(Configs, ReadWhatKerasWrites) {
  const Value zeros(Map{{"module", "keras.initializers"}, {"class_name", "Zeros"}, {"config", Map{}}, {"registered_name", Value()}});
  const Value glorot(Map{{"module", "keras.initializers"}, {"class_name", "GlorotUniform"}, {"config", Map{{"seed", Value()}, {"input_axes", Value()}, {"output_axes", Value()}}}, {"registered_name", Value()}});
  const Value policy(Map{{"module", "keras"}, {"class_name", "DTypePolicy"}, {"config", Map{{"name", "float32"}}}, {"registered_name", Value()}});
  // As Keras 3.15 writes a Dense.
  const Map config{{"name", "d1"}, {"trainable", true}, {"dtype", policy}, {"units", 3}, {"activation", "relu"}, {"use_bias", true}, {"kernel_initializer", glorot}, {"bias_initializer", zeros}, {"kernel_regularizer", Value()}, {"bias_regularizer", Value()}, {"kernel_constraint", Value()}, {"bias_constraint", Value()}, {"quantization_config", Value()}};
  const Value back = written(*layer_from("Dense", config));
  for (const auto& [key, value] : config) {
    if (key == "kernel_initializer" || key == "quantization_config") continue;  // keys that older versions of Keras don't know are not written
    ASSERT_TRUE(back.find(key)) << key;
    EXPECT_EQ(*back.find(key), value) << key;
  }
  EXPECT_EQ(back.find("quantization_config"), nullptr);
  // And tf_keras a BatchNormalization.
  const auto bn = layer_from("BatchNormalization", Map{{"name", "bn"}, {"trainable", true}, {"dtype", "float32"}, {"batch_input_shape", List{Value(), 4}}, {"axis", List{1}}, {"momentum", 0.99}, {"epsilon", 0.001}, {"center", true}, {"scale", true}, {"moving_mean_initializer", zeros}, {"beta_constraint", Value()}, {"renorm", false}, {"renorm_clipping", Value()}, {"renorm_momentum", 0.99}});
  EXPECT_EQ(*written(*bn).find("axis"), Value(1));
}

// Numbers computed with numpy from Keras's formulas.
const std::vector<double> bn_input = {1, 2, 3, -1, 8, 5, 0, 4};

Map bn_config() { return {{"momentum", 0.9}}; }

Evaluation bn_evaluation(const Shape& shape) {
  Evaluation evaluation;
  evaluation.feeds["x0"] = f64(shape, bn_input);
  evaluation.feeds["layer/gamma"] = f64({2}, {1.5, 0.5});
  evaluation.feeds["layer/beta"] = f64({2}, {0.1, -0.2});
  evaluation.feeds["layer/moving_mean"] = f64({2}, {1, 2});
  evaluation.feeds["layer/moving_variance"] = f64({2}, {3, 4});
  return evaluation;
}

TEST(BatchNormalization, UsesBatchStatisticsInTrainingAndMovesTheMovingOnes) {
  for (const bool synchronized : {false, true}) {
    Map config = bn_config();
    config.emplace_back("synchronized", synchronized);
    const auto layer = layer_from("BatchNormalization", config);
    const TracedLayer traced(*layer, {{DType::f64, {4, 2}}}, f64_settings(true));
    Evaluation evaluation = bn_evaluation({4, 2});
    expect_near(numbers(evaluation.run(traced.outputs[0])),
                {-0.873277303011323, -0.30909855527413, 0.1, -0.963689886918907, 2.533193257528307, 0.345492776370648, -1.359915954516984, 0.127295665822389}, 1e-13);
    ASSERT_EQ(traced.context->updates().size(), 2u);
    EXPECT_EQ(traced.context->updates()[0].variable, "layer/moving_mean");
    EXPECT_EQ(traced.context->updates()[1].variable, "layer/moving_variance");
    expect_near(numbers(evaluation.run(traced.context->updates()[0].value)), {1.2, 2.05}, 1e-14);
    expect_near(numbers(evaluation.run(traced.context->updates()[1].value)), {3.65, 4.125}, 1e-14);
  }
}

TEST(BatchNormalization, UsesMovingStatisticsInInferenceAndWhenFrozen) {
  for (const bool frozen : {false, true}) {
    Map config = bn_config();
    config.emplace_back("trainable", !frozen);
    const auto layer = layer_from("BatchNormalization", config);
    const TracedLayer traced(*layer, {{DType::f64, {4, 2}}}, f64_settings(frozen));
    EXPECT_TRUE(traced.context->updates().empty());
    expect_near(numbers(bn_evaluation({4, 2}).run(traced.outputs[0])),
                {0.1, -0.2, 1.831762204583025, -0.949906267574464, 6.161167716040588, 0.549906267574464, -0.765881102291513, 0.299937511716309}, 1e-13);
  }
}

TEST(BatchNormalization, TakesTheUnbiasedVarianceOfImagesInKeras2Only) {
  const auto layer = layer_from("BatchNormalization", bn_config());
  const auto moved = [&](const Shape& shape, int semantics) {
    const TracedLayer traced(*layer, {{DType::f64, shape}}, f64_settings(true, semantics));
    return numbers(bn_evaluation(shape).run(traced.context->updates()[1].value));
  };
  expect_near(moved({1, 2, 2, 2}, 2), {3.966666666666667, 4.3}, 1e-14);
  expect_near(moved({1, 2, 2, 2}, 3), {3.65, 4.125}, 1e-14);
  expect_near(moved({4, 2}, 2), {3.65, 4.125}, 1e-14);
}

TEST(BatchNormalization, MovesTwiceWhereItIsCalledTwice) {
  Trace trace(f64_settings(true));
  const auto layer = layer_from("BatchNormalization", Map{{"momentum", 0.5}});
  const Symbol x = trace.graph.input("x0", {DType::f64, {4, 2}});
  trace.context.call(*layer, {&x, 1});
  trace.context.call(*layer, {&x, 1});
  ASSERT_EQ(trace.context.updates().size(), 2u);
  // (1 + 3) / 2 = 2, (2 + 3) / 2 = 2.5; (2 + 2.5) / 2 = 2.25, (2.25 + 2.5) / 2 = 2.375.
  expect_near(numbers(bn_evaluation({4, 2}).run(trace.context.updates()[0].value)), {2.5, 2.375}, 1e-14);
}

TEST(Dropout, DoesNothingInInferenceAndKeepsTheMeanInTraining) {
  const auto layer = layer_from("Dropout", Map{{"rate", 0.25}});
  const TracedLayer inference(*layer, {{DType::f32, {2, 5000}}});
  EXPECT_EQ(inference.outputs[0], inference.inputs[0]);
  LayerContext::Settings settings;
  settings.training = true;
  const TracedLayer training(*layer, {{DType::f32, {2, 5000}}}, settings);
  Evaluation evaluation;
  evaluation.replica.rows = {0, 2};
  evaluation.feeds["x0"] = f32({2, 5000}, std::vector<float>(10000, 3));
  const std::vector<double> y = numbers(evaluation.run(training.outputs[0]));
  for (const double value : y) EXPECT_TRUE(value == 0 || value == 4) << value;
  // 10,000 draws: 5 deviations of the mean are 5 * 4 * sqrt(0.25 * 0.75 / 10000).
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0) / 10000, 3, 0.087);
}

TEST(Merge, AlignsAWeightAtItsLastAxis) {
  Trace trace(f64_settings(false));
  const auto layer = layer_from("Add", Map{});
  const Symbol x = trace.graph.input("x", {DType::f64, {2, 3, 2}});
  const std::vector<Symbol> inputs = {x, trace.graph.variable({"shift", {DType::f64, {2}}, true})};
  const Symbol y = trace.context.call(*layer, inputs)[0];
  Evaluation evaluation;
  evaluation.feeds["x"] = f64({2, 3, 2}, std::vector<double>(12, 1));
  evaluation.feeds["shift"] = f64({2}, {10, 20});
  EXPECT_EQ(numbers(evaluation.run(y)), (std::vector<double>{11, 21, 11, 21, 11, 21, 11, 21, 11, 21, 11, 21}));
}

TEST(Errors, NameTheLayerAndWhatWouldFit) {
  const auto conv = layer_from("Conv2D", Map{{"filters", 2}, {"kernel_size", 3}});
  EXPECT_NE(thrown([&] { TracedLayer(*conv, {{DType::f32, {2, 8}}}); }).find("error[M11] layer: needs inputs of shape (rows, height, width, channels), got (2, 8)"), std::string::npos);
  const auto dot = layer_from("Dot", Map{{"axes", 1}});
  EXPECT_NE(thrown([&] { TracedLayer(*dot, {{DType::f32, {2, 3}}, {DType::f32, {2, 4}}}); }).find("must have equal sizes"), std::string::npos);
  const auto reshape = layer_from("Reshape", Map{{"target_shape", List{3, -1}}});
  EXPECT_NE(thrown([&] { TracedLayer(*reshape, {{DType::f32, {2, 8}}}); }).find("cannot reshape rows of 8 elements"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
