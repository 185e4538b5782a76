#include "layers/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;
using List = Value::List;
using Role = RowSource::Role;

/// Layers one after the other; every layer named in `outputs` is an output.
struct Chain {
  std::vector<std::shared_ptr<Layer>> layers;
  TracedModel model;

  Chain(std::vector<std::shared_ptr<Layer>> given, std::vector<std::string> outputs, TensorType row = {DType::f64, {1}}, const char* policy = "float64") : layers(std::move(given)) {
    model.inputs = {{"x", std::move(row)}};
    model.outputs = std::move(outputs);
    model.dtype_policy = policy;
    model.call = [this](LayerContext& context, std::span<const Symbol> inputs) {
      std::map<std::string, Symbol> named;
      Symbol x = inputs[0];
      for (const auto& layer : layers) named[layer->name] = x = context.call(*layer, {&x, 1})[0];
      std::vector<Symbol> results;
      for (const std::string& name : model.outputs) results.push_back(named.at(name));
      return results;
    };
  }
  Chain(const Chain&) = delete;
};

std::shared_ptr<Layer> dense(const char* name, Map config) {
  if (!Value(config).find("units")) config.emplace_back("units", 1);
  if (!Value(config).find("use_bias")) config.emplace_back("use_bias", false);
  return layer_from("Dense", config, name);
}

TrainingSpec spec_of(std::vector<Value> losses, std::vector<RowSource::Column> columns) {
  TrainingSpec spec;
  for (const Value& loss : losses) {
    TrainingSpec::Output output;
    if (!loss.is_null()) output.loss = make_loss(loss);
    spec.outputs.push_back(output);
  }
  spec.columns = std::move(columns);
  return spec;
}

RowSource::Column target(const char* name, DType dtype = DType::f64, Shape row = {1}) { return {Role::target, name, {dtype, std::move(row)}}; }

std::vector<double> report(const TracedStep& step, Evaluation& evaluation, const std::string& name) {
  const auto found = std::ranges::find(step.reports, name, &TracedStep::Report::name);
  if (found == step.reports.end()) throw std::runtime_error("no report " + name);
  EXPECT_EQ(found->value.dtype(), DType::f64);
  return numbers(evaluation.run(found->value));
}

std::vector<std::string> names_of(const TracedTraining& traced) {
  std::vector<std::string> names;
  for (const LoggedNumber& number : traced.numbers) names.push_back(number.name);
  return names;
}

Tensor rows_of(const std::vector<double>& values, size_t begin, size_t end) { return f64({static_cast<int64_t>(end - begin), 1}, {values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end)}); }

// y = 2 x against t: loss = mean (2 x - t)^2, gradient = mean 2 (2 x - t) x.
const std::vector<double> x_values = {1, 2, -1, 3}, t_values = {1, 5, 0, 6};
constexpr double whole_loss = (1.0 + 1 + 4 + 0) / 4;
constexpr double whole_gradient = (2.0 - 4 + 4 + 0) / 4;

TEST(TraceTraining, SharesOfReplicasAddUpToTheWhole) {
  Chain chain({dense("out", {})}, {"out"});
  const TrainingSpec spec = spec_of({"mse"}, {target("out")});
  double loss = 0, gradient = 0, valid = 0;
  // Four replicas of ceil(4 / 3) rows: the last has none.
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 2}, {2, 4}, {4, 4}}) {
    WeightList weights;
    const TracedTraining traced = trace_training(chain.model, spec, weights, {static_cast<int64_t>(end - begin), 4});
    Evaluation evaluation;
    evaluation.feeds = {{"input/x", rows_of(x_values, begin, end)}, {"target/out", rows_of(t_values, begin, end)}, {"out/kernel", f64({1, 1}, {2})}};
    loss += report(traced.step, evaluation, "loss")[0];
    valid += report(traced.step, evaluation, "valid")[0];
    ASSERT_EQ(traced.step.gradients.size(), 1u);
    EXPECT_EQ(traced.step.gradients[0].variable, "out/kernel");
    gradient += numbers(evaluation.run(traced.step.gradients[0].value))[0];
    EXPECT_EQ(names_of(traced), std::vector<std::string>{"loss"});
    EXPECT_TRUE(traced.step.outputs.empty());
  }
  EXPECT_DOUBLE_EQ(loss, whole_loss);
  EXPECT_DOUBLE_EQ(gradient, whole_gradient);
  EXPECT_EQ(valid, 4);
}

TEST(TraceTraining, AddsRegularisationOnReplicaZeroOnly) {
  Chain chain({dense("out", {{"kernel_regularizer", Map{{"type", "L2"}, {"l2", 0.5}}}})}, {"out"});
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec_of({"mse"}, {target("out")}), weights, {4, 4});
  for (const int replica : {0, 1}) {
    Evaluation evaluation;
    evaluation.replica.replica = replica;
    evaluation.feeds = {{"input/x", rows_of(x_values, 0, 4)}, {"target/out", rows_of(t_values, 0, 4)}, {"out/kernel", f64({1, 1}, {2})}};
    EXPECT_DOUBLE_EQ(report(traced.step, evaluation, "loss")[0], whole_loss + (replica == 0 ? 0.5 * 4 : 0));
    EXPECT_DOUBLE_EQ(numbers(evaluation.run(traced.step.gradients[0].value))[0], whole_gradient + (replica == 0 ? 0.5 * 2 * 2 : 0));
  }
}

TEST(TraceTraining, ListsGradientsInTheOrderInWhichBackwardMakesThem) {
  Chain chain({dense("first", {}), dense("frozen", {{"trainable", false}}), dense("last", {})}, {"last"});
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec_of({"mse"}, {target("last")}), weights, {4, 4});
  ASSERT_EQ(traced.step.gradients.size(), 2u);
  EXPECT_EQ(traced.step.gradients[0].variable, "last/kernel");
  EXPECT_EQ(traced.step.gradients[1].variable, "first/kernel");
  EXPECT_EQ(weights.all()[0].variable.path, "first/kernel") << "weights are in the order of the model";
}

TEST(TraceTraining, LeavesHolesOutAndWeighsLosses) {
  Chain chain({dense("a", {}), dense("b", {}), dense("c", {})}, {"a", "b", "c"});
  TrainingSpec spec = spec_of({"mse", {}, "mae"}, {target("a"), target("c")});
  spec.outputs[0].loss_weight = 0.25;
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec, weights, {4, 4});
  EXPECT_EQ(names_of(traced), (std::vector<std::string>{"loss", "a_loss", "c_loss"}));
  Evaluation evaluation;
  evaluation.feeds = {{"input/x", rows_of(x_values, 0, 4)}, {"target/a", rows_of(t_values, 0, 4)}, {"target/c", rows_of(x_values, 0, 4)}, {"a/kernel", f64({1, 1}, {2})}, {"b/kernel", f64({1, 1}, {1})}, {"c/kernel", f64({1, 1}, {1})}};
  // c = 2 x against x: the mean of |x|.
  EXPECT_DOUBLE_EQ(report(traced.step, evaluation, "a_loss")[0], whole_loss);
  EXPECT_DOUBLE_EQ(report(traced.step, evaluation, "c_loss")[0], 7.0 / 4);
  EXPECT_DOUBLE_EQ(report(traced.step, evaluation, "loss")[0], 0.25 * whole_loss + 7.0 / 4);
  EXPECT_EQ(report(traced.step, evaluation, "valid")[0], 8);
}

TEST(TraceTraining, GivesZeroWhereEveryWeightIsZero) {
  Chain chain({dense("out", {})}, {"out"});
  const TrainingSpec spec = spec_of({Map{{"type", "mse"}, {"reduction", "mean_with_sample_weight"}}}, {target("out"), {Role::sample_weight, "", {DType::f32, {}}}});
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec, weights, {4, 4});
  Evaluation evaluation;
  evaluation.feeds = {{"input/x", rows_of(x_values, 0, 4)}, {"target/out", rows_of(t_values, 0, 4)}, {"out/kernel", f64({1, 1}, {2})}, {"sample_weight/", f32({4}, {0, 0, 0, 0})}};
  EXPECT_EQ(report(traced.step, evaluation, "loss")[0], 0);
  EXPECT_EQ(report(traced.step, evaluation, "valid")[0], 0);
  EXPECT_EQ(numbers(evaluation.run(traced.step.gradients[0].value))[0], 0);
  evaluation.feeds["sample_weight/"] = f32({4}, {0, 2, 0, 0});
  EXPECT_DOUBLE_EQ(report(traced.step, evaluation, "loss")[0], 1);
  EXPECT_EQ(report(traced.step, evaluation, "valid")[0], 2);
}

TEST(TraceTraining, WeighsSamplesByTheirClass) {
  Chain chain({dense("out", {{"units", 2}, {"activation", "softmax"}})}, {"out"});
  TrainingSpec spec = spec_of({"sparse_categorical_crossentropy"}, {target("out", DType::i64, {})});
  spec.class_weight = {{1, 3}};
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec, weights, {2, 2});
  Evaluation evaluation;
  evaluation.feeds = {{"input/x", f64({2, 1}, {1, 1})}, {"target/out", i64({2}, {0, 1})}, {"out/kernel", f64({1, 2}, {0, 0})}};
  EXPECT_NEAR(report(traced.step, evaluation, "loss")[0], (1 + 3) * std::log(2) / 2, 1e-15);
  const TracedTraining evaluated = trace_evaluation(chain.model, spec, weights, {2, 2});
  EXPECT_NEAR(report(evaluated.step, evaluation, "loss")[0], 2 * std::log(2), 1e-15) << "classes are not weighed in evaluation";
  spec.columns.push_back({Role::sample_weight, "out", {DType::f32, {}}});
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec, weights, {2, 2}); }).find("can't go together"), std::string::npos);
}

TEST(TraceTraining, GivesUpdatesOfMovingStatistics) {
  Chain chain({std::shared_ptr<Layer>(layer_from("BatchNormalization", Map{}, "bn")), dense("out", {})}, {"out"});
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec_of({"mse"}, {target("out")}), weights, {4, 4});
  ASSERT_EQ(traced.step.updates.size(), 2u);
  EXPECT_EQ(traced.step.updates[0].variable, "bn/moving_mean");
  EXPECT_EQ(traced.step.updates[1].variable, "bn/moving_variance");
  EXPECT_TRUE(trace_evaluation(chain.model, spec_of({"mse"}, {target("out")}), weights, {4, 4}).step.updates.empty());
}

TEST(TraceTraining, KeepsGradientsInTheVariablesDtype) {
  Chain chain({dense("out", {})}, {"out"}, {DType::f32, {1}}, "mixed_bfloat16");
  WeightList weights;
  const TracedTraining traced = trace_training(chain.model, spec_of({"mse"}, {target("out", DType::f32)}), weights, {4, 4});
  EXPECT_EQ(traced.step.gradients[0].value.type(), (TensorType{DType::f32, {1, 1}}));
}

TEST(TraceTraining, NamesTheSameThingsForEveryShape) {
  Chain chain({dense("hidden", {{"units", 3}, {"activation", "relu"}, {"kernel_regularizer", "l2"}}), dense("out", {{"units", 2}})}, {"out"});
  TrainingSpec spec = spec_of({Map{{"type", "SparseCategoricalCrossentropy"}, {"from_logits", true}}}, {target("out", DType::i64, {})});
  spec.outputs[0].metrics = {"accuracy"};
  WeightList weights;
  const auto described = [&](int64_t rows) {
    const TracedTraining traced = trace_training(chain.model, spec, weights, {rows, 4});
    std::vector<std::string> text;
    for (const auto& input : traced.step.inputs) text.push_back(input.name);
    for (const auto& gradient : traced.step.gradients) text.push_back(gradient.variable);
    for (const auto& one : traced.step.reports) text.push_back(one.name);
    return text;
  };
  const std::vector<std::string> four = described(4);
  EXPECT_EQ(four, (std::vector<std::string>{"x", "out", "out/kernel", "hidden/kernel", "loss", "accuracy", "valid"}));
  for (const int64_t rows : {1, 0}) EXPECT_EQ(described(rows), four);
}

TEST(TraceTraining, CastsColumnsToTheModelsInputs) {
  Chain chain({std::shared_ptr<Layer>(layer_from("Rescaling", Map{{"scale", 0.5}}, "scaled")), dense("out", {})}, {"out"});
  TrainingSpec spec = spec_of({"mse"}, {target("out"), {Role::input, "x", {DType::u8, {1}}}});
  WeightList weights;
  EXPECT_EQ(trace_training(chain.model, spec, weights, {4, 4}).step.inputs[0].value.type(), (TensorType{DType::u8, {4, 1}}));
  spec.columns[1].row.shape = {2};
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec, weights, {4, 4}); }).find("error[D12] samples of input 'x' are (2,), the model takes (1,)"), std::string::npos);
}

TEST(TraceTraining, TellsWhatIsMissing) {
  Chain chain({dense("a", {}), dense("b", {})}, {"a", "b"});
  WeightList weights;
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec_of({"mse", {}}, {target("labels")}), weights, {4, 4}); }).find("error[D16] output 'a' has a loss, but the data has no target of that name; its targets: labels"), std::string::npos);
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec_of({"mse"}, {target("a")}), weights, {4, 4}); }).find("the model has 2 outputs, 1 losses are given; use null"), std::string::npos);
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec_of({{}, {}}, {}), weights, {4, 4}); }).find("no output has a loss"), std::string::npos);
  EXPECT_NE(thrown([&] { trace_training(chain.model, spec_of({"mse", {}}, {target("a", DType::f64, {3})}), weights, {4, 4}); }).find("output 'a': mean_squared_error needs targets of the output's shape"), std::string::npos);
}

TEST(Metrics, AreNamedAsKerasNamesThem) {
  Chain chain({dense("a", {}), dense("b", {})}, {"a", "b"});
  TrainingSpec spec = spec_of({"mse", "mse"}, {target("a"), target("b")});
  spec.outputs[0].metrics = {"mae", "mae"};
  spec.outputs[0].weighted_metrics = {"mae", Map{{"type", "BinaryAccuracy"}}};
  spec.outputs[1].metrics = {"accuracy"};
  WeightList weights;
  EXPECT_EQ(names_of(trace_training(chain.model, spec, weights, {4, 4})), (std::vector<std::string>{"loss", "a_loss", "b_loss", "a_mae", "a_mae_1", "b_accuracy", "a_weighted_mae", "a_binary_accuracy"}));
}

// Reported for other frameworks: 5 labels in batches of 3 and 2, one wrong: 0.8, not the 0.75 that is the mean of batches.
TEST(TraceEvaluation, SumsBatchesExactly) {
  Chain chain({dense("out", {{"kernel_regularizer", "l2"}})}, {"out"});
  TrainingSpec spec = spec_of({"mse"}, {target("out")});
  spec.outputs[0].metrics = {"accuracy"};
  const std::vector<double> x = {1, 0, 1, 0, 1}, labels = {1, 0, 1, 0, 0};
  std::vector<double> loss(2), accuracy(2);
  std::vector<LoggedNumber> logged;
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 3}, {3, 5}}) {
    WeightList weights;
    TracedTraining traced = trace_evaluation(chain.model, spec, weights, {static_cast<int64_t>(end - begin), static_cast<int64_t>(end - begin)});
    Evaluation evaluation;
    evaluation.feeds = {{"input/x", rows_of(x, begin, end)}, {"target/out", rows_of(labels, begin, end)}, {"out/kernel", f64({1, 1}, {1})}};
    for (size_t i = 0; i < 2; ++i) {
      loss[i] += report(traced.step, evaluation, "loss")[i];
      accuracy[i] += report(traced.step, evaluation, "accuracy")[i];
    }
    EXPECT_TRUE(traced.step.gradients.empty());
    ASSERT_EQ(traced.step.outputs.size(), 1u);
    EXPECT_EQ(traced.step.outputs[0].name, "out");
    logged = traced.numbers;
  }
  EXPECT_DOUBLE_EQ(logged[0].value(loss), 0.2 + 0.01);
  EXPECT_DOUBLE_EQ(logged[1].value(accuracy), 0.8);
}

TEST(TraceForward, GivesOutputsOrNamedLayers) {
  Chain chain({dense("a", {}), dense("b", {})}, {"b"});
  WeightList weights;
  const TracedStep outputs = trace_forward(chain.model, weights, {2, 2});
  ASSERT_EQ(outputs.outputs.size(), 1u);
  EXPECT_EQ(outputs.outputs[0].name, "b");
  EXPECT_EQ(weights.all().size(), 2u);
  const TracedStep inner = trace_forward(chain.model, weights, {2, 2}, {{"a"}, false, {}});
  ASSERT_EQ(inner.outputs.size(), 1u);
  EXPECT_EQ(inner.outputs[0].name, "a");
  Evaluation evaluation;
  evaluation.feeds = {{"input/x", f64({2, 1}, {1, 2})}, {"a/kernel", f64({1, 1}, {3})}};
  EXPECT_EQ(numbers(evaluation.run(inner.outputs[0].value)), (std::vector<double>{3, 6})) << "b's kernel is not asked for";
  EXPECT_NE(thrown([&] { trace_forward(chain.model, weights, {2, 2}, {{"c"}, false, {}}); }).find("error[M14] the model has no layer 'c'"), std::string::npos);
}

TEST(TraceForward, ProbesWriteARecordForEachOutput) {
  Chain chain({dense("a", {}), dense("b", {})}, {"a", "b"});
  WeightList weights;
  const TracedStep step = trace_forward(chain.model, weights, {1, 1}, {{}, true, {}});
  Evaluation evaluation;
  evaluation.feeds = {{"input/x", f64({1, 1}, {1})}, {"a/kernel", f64({1, 1}, {3})}, {"b/kernel", f64({1, 1}, {2})}};
  evaluation.run(step.outputs[1].value);
  ASSERT_EQ(evaluation.step.records.size(), 2u);
  EXPECT_EQ(evaluation.step.records[1].layer, "b");
  EXPECT_EQ(evaluation.step.records[1].hash, hash_of(f64({1, 1}, {6}).bytes()));
}

}  // namespace
}  // namespace lockstep
