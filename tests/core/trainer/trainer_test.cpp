#include "core/trainer/trainer.h"

#include <cstring>
#include <mutex>

#include <gtest/gtest.h>

#include "core/communicator/communicator.h"
#include "core/ops/ops.h"
#include "core/random/philox.h"

namespace lockstep {
namespace {

/// Two columns of f32 rows that are a function of the row's number.
class NumberedRows final : public RowSource {
 public:
  explicit NumberedRows(int64_t rows) : rows_(rows), columns_{{Role::input, "x", {DType::f32, {3}}}, {Role::target, "y", {DType::f32, {1}}}} {}

  int64_t rows() const override { return rows_; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const override {
    auto* values = reinterpret_cast<float*>(out.data());
    for (const int64_t row : rows) {
      for (int64_t i = 0; i < columns_[column].row.elements(); ++i) *values++ = static_cast<float>((row * 7 + i * 3 + static_cast<int64_t>(column)) % 11) / 11.0f - 0.4f;
    }
  }
  std::string fingerprint() const override { return "numbered"; }

 private:
  int64_t rows_;
  std::vector<Column> columns_;
};

const std::vector<Variable> mlp_variables = {{"a/kernel", {DType::f32, {3, 5}}, true}, {"a/bias", {DType::f32, {5}}, true}, {"b/kernel", {DType::f32, {5, 1}}, true}, {"statistics/mean", {DType::f32, {5}}, false}};

/// relu(x a + bias) b against y: mean of squares; the mean of the hidden layer is kept as a moving statistic.
TracedStep trace_mlp(const StepShape& shape) {
  TracedStep step;
  step.graph = std::make_unique<Graph>();
  Graph& graph = *step.graph;
  const Symbol x = graph.input("x", {DType::f32, {shape.rows, 3}});
  const Symbol y = graph.input("y", {DType::f32, {shape.rows, 1}});
  step.inputs = {{RowSource::Role::input, "x", x}, {RowSource::Role::target, "y", y}};
  const Symbol a = graph.variable(mlp_variables[0]), bias = graph.variable(mlp_variables[1]), b = graph.variable(mlp_variables[2]), mean = graph.variable(mlp_variables[3]);
  const Symbol hidden = ops::dropout(ops::relu(ops::dense(x, a, bias)), 0.25, 17);
  const Symbol error = ops::subtract(ops::dense(hidden, b, {}), y);
  const Symbol loss = ops::multiply(ops::sum(ops::square(error)), 1.0 / static_cast<double>(shape.global_rows));
  const std::vector<Symbol> outputs = {loss}, seeds = {graph.constant(DType::f32, 1)}, weights = {b, a, bias};
  const std::vector<Symbol> gradients = differentiate(outputs, seeds, weights);
  step.gradients = {{"b/kernel", gradients[0]}, {"a/kernel", gradients[1]}, {"a/bias", gradients[2]}};
  step.updates = {{"statistics/mean", ops::add(ops::multiply(mean, 0.9), ops::multiply(ops::mean(hidden, {0}), 0.1))}};
  step.reports = {{"loss", ops::reshape(ops::cast(loss, DType::f64), {1})}};
  return step;
}

struct Outcome {
  std::string weights;
  std::vector<double> losses;
  std::vector<std::vector<std::byte>> slots;
};

/// Trains on so many ranks; every rank must end with the same weights.
Outcome train(int ranks, int replicas, const std::vector<int64_t>& batches, int nodes = 1) {
  Outcome outcome;
  std::mutex mutex;
  std::vector<std::string> hashes;
  run_ranks_as_threads(
      ranks,
      [&](Communicator& communicator) {
        const std::vector<std::string> order = {"b/kernel", "a/kernel", "a/bias"}, updates = {"statistics/mean"};
        MirroredState state(mlp_variables, order, updates);
        for (size_t v = 0; v < mlp_variables.size(); ++v) {
          Tensor value(mlp_variables[v].type);
          for (size_t i = 0; i < value.as<float>().size(); ++i) value.as<float>()[i] = static_cast<float>((i * 5 + v) % 7) / 7.0f - 0.3f;
          state.set(v, value);
        }
        const auto optimizer = make_optimizer(Value(Value::Map{{"type", "Adam"}, {"learning_rate", 0.05}}));
        Trainer trainer(communicator, {.replicas = {replicas, ranks}, .seed = 4}, trace_mlp, state, *optimizer);
        const NumberedRows rows(64);
        int64_t first = 0;
        for (size_t s = 0; s < batches.size(); ++s) {
          std::vector<int64_t> batch;
          for (int64_t i = 0; i < batches[s]; ++i) batch.push_back((first + i) % 64);
          first += batches[s];
          const StepReport& report = trainer.step(static_cast<int64_t>(s), rows, batch, {});
          if (communicator.rank() == 0) outcome.losses.push_back(report.reports.at("loss")[0]);
        }
        const auto slots = trainer.gather_slots();
        const std::lock_guard lock(mutex);
        hashes.push_back(state.hash());
        if (communicator.rank() == 0) {
          outcome.weights = state.hash();
          for (const auto& slot : slots) {
            for (const Tensor& tensor : slot) {
              if (tensor.valid()) outcome.slots.emplace_back(tensor.bytes().begin(), tensor.bytes().end());
            }
          }
        }
      },
      nodes);
  for (const std::string& hash : hashes) EXPECT_EQ(hash, outcome.weights);
  return outcome;
}

TEST(Trainer, TheNumberOfRanksDoesNotChangeABit) {
  const std::vector<int64_t> batches = {16, 16, 10, 2, 1, 16};  // ragged, and fewer rows than replicas
  const Outcome one = train(1, 4, batches);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int ranks : {2, 3, 4}) {
    const Outcome many = train(ranks, 4, batches);
    EXPECT_EQ(many.weights, one.weights) << ranks << " ranks";
    EXPECT_EQ(many.losses, one.losses) << ranks << " ranks";
    EXPECT_EQ(many.slots, one.slots) << ranks << " ranks";
  }
}

TEST(Trainer, TheNumberOfNodesDoesNotChangeABit) {
  const Outcome one = train(1, 4, {16, 7});
  EXPECT_EQ(train(4, 4, {16, 7}, 2).weights, one.weights);
  EXPECT_EQ(train(3, 4, {16, 7}, 3).weights, one.weights);
}

TEST(Trainer, ReplicasWithoutRowsLeaveStatisticsAlone) {
  // One row over 4 replicas is one row on one replica.
  EXPECT_NE(train(1, 4, {16}).weights, train(1, 4, {16, 1}).weights);
  EXPECT_EQ(train(1, 1, {1}).losses, train(1, 4, {1}).losses);
  EXPECT_EQ(train(1, 1, {1}).weights, train(1, 4, {1}).weights);
}

/// One weight w, loss: weighted mean of g x w over all samples of all replicas, where the divisor is the global sum of weights.
TracedStep trace_weighted(const StepShape& shape) {
  TracedStep step;
  step.graph = std::make_unique<Graph>();
  Graph& graph = *step.graph;
  const Symbol g = graph.input("g", {DType::f32, {shape.rows}});
  const Symbol sample_weight = graph.input("", {DType::f32, {shape.rows}});
  step.inputs = {{RowSource::Role::input, "g", g}, {RowSource::Role::sample_weight, "", sample_weight}};
  const Symbol w = graph.variable({"w", {DType::f32, {}}, true});
  const Symbol divisor = ops::stop_gradient(ops::replica_sum(ops::sum(sample_weight)));
  const Symbol loss = ops::divide_no_nan(ops::sum(ops::multiply(ops::multiply(g, sample_weight), w)), divisor);
  const std::vector<Symbol> outputs = {loss}, seeds = {graph.constant(DType::f32, 1)}, weights = {w};
  step.gradients = {{"w", differentiate(outputs, seeds, weights)[0]}};
  step.reports = {{"loss", ops::reshape(ops::cast(loss, DType::f64), {1})}, {"valid", ops::reshape(ops::cast(ops::sum(sample_weight), DType::f64), {1})}};
  return step;
}

class WeightedRows final : public RowSource {
 public:
  WeightedRows(std::vector<float> gradients, std::vector<float> weights) : values_{std::move(gradients), std::move(weights)}, columns_{{Role::input, "g", {DType::f32, {}}}, {Role::sample_weight, "", {DType::f32, {}}}} {}

  int64_t rows() const override { return static_cast<int64_t>(values_[0].size()); }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const override {
    for (size_t i = 0; i < rows.size(); ++i) std::memcpy(out.data() + i * sizeof(float), &values_[column][static_cast<size_t>(rows[i])], sizeof(float));
  }
  std::string fingerprint() const override { return "weighted"; }

 private:
  std::vector<float> values_[2];
  std::vector<Column> columns_;
};

/// The weight after one step of SGD(0.5) from 1, on 2 replicas of 3 rows each, and whether there was an update.
std::pair<float, bool> weight_after(const std::vector<float>& gradients, const std::vector<float>& weights, int ranks) {
  std::pair<float, bool> result;
  run_ranks_as_threads(ranks, [&](Communicator& communicator) {
    const std::vector<std::string> order = {"w"};
    MirroredState state({{"w", {DType::f32, {}}, true}}, order, {});
    const float start = 1;
    state.set(0, Tensor::of<float>(DType::f32, {}, {&start, 1}));
    const auto optimizer = make_optimizer(Value(Value::Map{{"type", "SGD"}, {"learning_rate", 0.5}}));
    Trainer trainer(communicator, {.replicas = {2, ranks}}, trace_weighted, state, *optimizer);
    const WeightedRows rows(gradients, weights);
    const std::vector<int64_t> batch = {0, 1, 2, 3, 4, 5};
    const bool updated = trainer.step(0, rows, batch, {}).updated;
    if (communicator.rank() == 0) result = {state.tensor(0).as<float>()[0], updated && trainer.iteration() == 1};
  });
  return result;
}

TEST(Trainer, DividesByTheGlobalSumOfWeights) {
  for (const int ranks : {1, 2}) {
    EXPECT_EQ(weight_after({1, 0, 0, -3, -3, -3}, {1, 0, 0, 1, 1, 1}, ranks), (std::pair<float, bool>{2.0f, true}));   // mean of {+1, -3, -3, -3}
    EXPECT_EQ(weight_after({1, 0, 0, -3, -3, -3}, {0, 0, 0, 1, 1, 1}, ranks), (std::pair<float, bool>{2.5f, true}));   // the first replica masked
    EXPECT_EQ(weight_after({1, 0, 0, -3, -3, -3}, {0, 0, 0, 0, 0, 0}, ranks), (std::pair<float, bool>{1.0f, false}));  // all masked: no update
  }
}

TEST(Trainer, SlotsMoveToAnotherNumberOfRanks) {
  std::vector<std::vector<Tensor>> slots;
  std::string expected, found;
  const std::vector<std::string> order = {"w"};
  const std::vector<Variable> variables = {{"w", {DType::f32, {9000}}, true}};
  const auto optimizer = make_optimizer("adam");
  const auto trace = [&](const StepShape&) {
    TracedStep step;
    step.graph = std::make_unique<Graph>();
    step.gradients = {{"w", step.graph->constant(DType::f32, 1, {9000})}};
    return step;
  };
  run_ranks_as_threads(3, [&](Communicator& communicator) {
    MirroredState state(variables, order, {});
    Trainer trainer(communicator, {.replicas = {3, 3}}, trace, state, *optimizer);
    std::vector<std::vector<Tensor>> given(2, std::vector<Tensor>(1));
    for (size_t s = 0; s < 2; ++s) {
      given[s][0] = Tensor(variables[0].type);
      for (size_t i = 0; i < 9000; ++i) given[s][0].as<float>()[i] = static_cast<float>(i + s * 10000);
    }
    trainer.scatter_slots(given);
    const auto gathered = trainer.gather_slots();
    if (communicator.rank() == 0) {
      slots = gathered;
      expected = hash_of(given[1][0].bytes());
      found = hash_of(gathered[1][0].bytes());
    } else {
      EXPECT_TRUE(gathered.empty());
    }
  });
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace lockstep
