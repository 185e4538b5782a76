#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/ops/ops.h"
#include "tests/layers/trace.h"

/// What every layer of the registry promises. A layer that is not in the table fails the first test: add a row.
namespace lockstep {
namespace {

using List = Value::List;
using Map = Value::Map;

struct Row {
  std::string type;
  Map config;
  std::vector<Shape> inputs;  ///< with 3 rows
  std::vector<Shape> outputs;
  DType input = DType::f64;  ///< integers: not differentiated
};

const Row rows[] = {
    {"Activation", {{"activation", "tanh"}}, {{3, 4}}, {{3, 4}}},
    {"Activation", {{"activation", Map{{"class_name", "LeakyReLU"}, {"config", Map{{"negative_slope", 0.1}}}}}}, {{3, 2, 2}}, {{3, 2, 2}}},
    {"Add", {}, {{3, 4}, {3, 4}, {3, 1}}, {{3, 4}}},
    {"Add", {}, {{3, 2, 4}, {3, 4}}, {{3, 2, 4}}},
    {"Average", {}, {{3, 4}, {3, 4}}, {{3, 4}}},
    {"BatchNormalization", {}, {{3, 4}}, {{3, 4}}},
    {"BatchNormalization", {{"axis", List{1}}, {"center", false}, {"momentum", 0.9}}, {{3, 4, 2}}, {{3, 4, 2}}},
    {"BatchNormalization", {{"synchronized", true}, {"scale", false}}, {{3, 2, 2, 2}}, {{3, 2, 2, 2}}},
    {"Cast", {{"dtype", "float64"}}, {{3, 4}}, {{3, 4}}},
    {"Concatenate", {}, {{3, 4}, {3, 2}}, {{3, 6}}},
    {"Concatenate", {{"axis", 1}}, {{3, 1, 2}, {3, 2, 2}}, {{3, 3, 2}}},
    {"Conv2D", {{"filters", 2}, {"kernel_size", 3}, {"padding", "same"}, {"activation", "sigmoid"}}, {{3, 4, 5, 2}}, {{3, 4, 5, 2}}},
    {"Conv2D", {{"filters", 4}, {"kernel_size", List{2, 1}}, {"strides", 2}, {"groups", 2}, {"use_bias", false}}, {{3, 5, 4, 2}}, {{3, 2, 2, 4}}},
    {"Dense", {{"units", 3}, {"activation", "softplus"}, {"kernel_regularizer", "l2"}}, {{3, 4}}, {{3, 3}}},
    {"Dense", {{"units", 2}, {"use_bias", false}, {"kernel_initializer", "he_normal"}}, {{3, 2, 4}}, {{3, 2, 2}}},
    {"Dense", {{"units", 2}}, {{3, 4}}, {{3, 2}}, DType::i64},
    {"Dot", {{"axes", 1}}, {{3, 4}, {3, 4}}, {{3, 1}}},
    {"Dot", {{"axes", List{2, 1}}, {"normalize", true}}, {{3, 2, 4}, {3, 4, 5}}, {{3, 2, 5}}},
    {"Dropout", {{"rate", 0.4}}, {{3, 6}}, {{3, 6}}},
    {"Dropout", {{"rate", 0.5}, {"noise_shape", List{Value(), 1}}, {"seed", 3}}, {{3, 6}}, {{3, 6}}},
    {"ELU", {{"alpha", 0.7}}, {{3, 4}}, {{3, 4}}},
    {"Embedding", {{"input_dim", 5}, {"output_dim", 2}}, {{3, 4}}, {{3, 4, 2}}, DType::i32},
    {"Flatten", {}, {{3, 4, 2}}, {{3, 8}}},
    {"GlobalAveragePooling2D", {}, {{3, 2, 3, 4}}, {{3, 4}}},
    {"GlobalAveragePooling2D", {{"keepdims", true}}, {{3, 2, 3, 4}}, {{3, 1, 1, 4}}},
    {"Identity", {}, {{3, 4}, {3, 2}}, {{3, 4}, {3, 2}}},
    {"LeakyReLU", {{"alpha", 0.2}}, {{3, 4}}, {{3, 4}}},
    {"MaxPooling2D", {}, {{3, 4, 4, 2}}, {{3, 2, 2, 2}}},
    {"MaxPooling2D", {{"pool_size", 3}, {"strides", List{2, 1}}, {"padding", "same"}}, {{3, 4, 4, 2}}, {{3, 2, 4, 2}}},
    {"Maximum", {}, {{3, 4}, {3, 4}}, {{3, 4}}},
    {"Minimum", {}, {{3, 4}, {3, 4}}, {{3, 4}}},
    {"Multiply", {}, {{3, 4}, {3, 4}}, {{3, 4}}},
    {"PReLU", {}, {{3, 4}}, {{3, 4}}},
    {"PReLU", {{"shared_axes", List{1}}}, {{3, 2, 4}}, {{3, 2, 4}}},
    {"Print", {{"message", "replica {replica}"}}, {{3, 4}}, {{3, 4}}},
    {"ReLU", {{"max_value", 6.0}, {"negative_slope", 0.1}}, {{3, 4}}, {{3, 4}}},
    {"Rescaling", {{"scale", 0.5}, {"offset", -1}}, {{3, 4}}, {{3, 4}}},
    {"Rescaling", {{"scale", List{0.5, 2.0}}}, {{3, 2}}, {{3, 2}}},
    {"Rescaling", {{"scale", 0.25}}, {{3, 2}}, {{3, 2}}, DType::u8},
    {"Reshape", {{"target_shape", List{2, -1}}}, {{3, 8}}, {{3, 2, 4}}},
    {"Softmax", {}, {{3, 4}}, {{3, 4}}},
    {"Softmax", {{"axis", 1}}, {{3, 4, 2}}, {{3, 4, 2}}},
    {"Subtract", {}, {{3, 4}, {3, 4}}, {{3, 4}}},
    {"SyncBatchNormalization", {}, {{3, 4}}, {{3, 4}}},
};

std::unique_ptr<Layer> made(const Row& row) { return layer_from(row.type, row.config); }

LayerContext::Settings settings_of(const char* policy) {
  LayerContext::Settings settings;
  settings.training = true;
  settings.dtype_policy = policy;
  return settings;
}

std::vector<TensorType> types_of(const Row& row, int64_t count = 3) {
  std::vector<TensorType> types;
  for (Shape shape : row.inputs) {
    shape[0] = count;
    types.push_back({row.input, shape});
  }
  return types;
}

/// Distinct values of both signs; indices for integer inputs.
void feed(Evaluation& evaluation, const TracedLayer& traced) {
  for (const Symbol x : traced.inputs) {
    const std::string& name = traced.graph->value(x.id()).name;
    evaluation.feeds[name] = is_floating(x.dtype()) ? uniform(x.type(), -1, 1, name) : uniform(x.type(), 0, 5, name);
  }
  // Away from initial values, at which derivatives of several functions are zero or jump.
  for (const Weight& weight : traced.weights.all()) evaluation.feeds[weight.variable.path] = uniform(weight.variable.type, 0.3, 1.2, weight.variable.path);
}

/// A scalar on which every output element has an influence of its own.
Symbol weighed(const std::vector<Symbol>& outputs) {
  Symbol total;
  for (const Symbol y : outputs) {
    const Symbol part = ops::sum(ops::multiply(y, y.graph().constant(uniform(y.type(), 0.5, 1.5, "influence"))));
    total = total ? ops::add(total, part) : part;
  }
  return total;
}

TEST(Contract, HasARowForEveryLayer) {
  std::set<std::string> tested;
  for (const Row& row : rows) tested.insert(row.type);
  for (const std::string& type : builtin_layers().types()) EXPECT_TRUE(tested.contains(type)) << type << " has no row in this test's table";
  for (const std::string& type : tested) EXPECT_TRUE(builtin_layers().find(type)) << type;
}

TEST(Contract, ConfigsSurviveARoundTrip) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type);
    const auto first = made(row);
    EXPECT_EQ(first->type(), row.type);
    const Value config = written(*first);
    const auto second = layer_from(row.type, config);
    EXPECT_EQ(written(*second), config);
    for (const char* key : {"name", "trainable", "dtype"}) EXPECT_TRUE(config.find(key)) << key;
  }
}

TEST(Contract, UnknownConfigKeysAreErrors) {
  for (const Row& row : rows) {
    Map config = row.config;
    config.emplace_back("no_such_key", 1);
    const std::string text = thrown([&] { layer_from(row.type, config); });
    EXPECT_NE(text.find("error[Y09]"), std::string::npos) << row.type << ": " << text;
    EXPECT_NE(text.find("'no_such_key'"), std::string::npos) << row.type << ": " << text;
  }
}

TEST(Contract, OutputsHaveTheirShapesForAnyCountOfRows) {
  for (const Row& row : rows) {
    for (const int64_t count : {3, 1, 0}) {
      SCOPED_TRACE(row.type + " with " + std::to_string(count) + " rows");
      const auto layer = made(row);
      const TracedLayer traced(*layer, types_of(row, count), settings_of("float64"));
      ASSERT_EQ(traced.outputs.size(), row.outputs.size());
      for (size_t i = 0; i < row.outputs.size(); ++i) {
        Shape expected = row.outputs[i];
        expected[0] = count;
        EXPECT_EQ(text_of(traced.outputs[i].shape()), text_of(expected));
      }
    }
  }
}

TEST(Contract, OutputsHaveTheComputeDtypeAndVariablesTheirs) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type);
    const auto layer = made(row);
    layer->dtype = "mixed_bfloat16";
    Row floats = row;
    if (is_floating(row.input)) floats.input = DType::f32;
    const TracedLayer traced(*layer, types_of(floats), settings_of("float32"));
    for (const Symbol y : traced.outputs) EXPECT_EQ(name_of(y.dtype()), "bfloat16");
    for (const Weight& weight : traced.weights.all()) EXPECT_EQ(name_of(weight.variable.type.dtype), "float32") << weight.variable.path;
    for (const LayerContext::Update& update : traced.context->updates()) EXPECT_EQ(name_of(update.value.dtype()), "float32") << update.variable;
  }
}

TEST(Contract, EqualTracesGiveEqualBytes) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type);
    const auto layer = made(row);
    std::vector<std::string> hashes[2];
    std::vector<std::string> nodes[2];
    for (int run = 0; run < 2; ++run) {
      const TracedLayer traced(*layer, types_of(row), settings_of("float64"));
      Evaluation evaluation = traced.evaluation();
      for (const Symbol x : traced.inputs) evaluation.feeds[traced.graph->value(x.id()).name] = uniform(x.type(), 0, 5, "x");
      for (const Tensor& y : evaluation.run(*traced.graph, traced.outputs)) hashes[run].push_back(hash_of(y.bytes()));
      for (const Graph::Node& node : traced.graph->nodes()) nodes[run].push_back(std::string(node.op->name()) + " " + node.layer);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    EXPECT_EQ(nodes[0], nodes[1]);
    for (const std::string& node : nodes[0]) EXPECT_TRUE(node.ends_with(" layer")) << node;
  }
}

TEST(Contract, GradientsAreThoseOfCentralDifferences) {
  constexpr double step = 1e-5;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type);
    const auto layer = made(row);
    const TracedLayer traced(*layer, types_of(row), settings_of("float64"));
    const Symbol total = weighed(traced.outputs);
    std::vector<Symbol> variables;
    std::vector<std::string> names;
    for (const Weight& weight : traced.weights.all()) {
      if (!weight.variable.trainable) continue;
      variables.push_back(traced.graph->variable(weight.variable));
      names.push_back(weight.variable.path);
    }
    for (const Symbol x : traced.inputs) {
      if (!is_floating(x.dtype())) continue;
      variables.push_back(x);
      names.push_back(traced.graph->value(x.id()).name);
    }
    const Symbol one = traced.graph->constant(DType::f64, 1);
    const std::vector<Symbol> gradients = differentiate({&total, 1}, {&one, 1}, variables);
    Evaluation evaluation;
    feed(evaluation, traced);
    for (size_t v = 0; v < variables.size(); ++v) {
      SCOPED_TRACE(names[v]);
      ASSERT_TRUE(gradients[v].valid());
      const std::vector<double> gradient = numbers(evaluation.run(gradients[v]));
      Tensor& value = evaluation.feeds[names[v]];
      for (size_t e = 0; e < gradient.size(); ++e) {
        double& x = value.as<double>()[e];
        const double before = x;
        x = before + step;
        const double above = numbers(evaluation.run(total))[0];
        x = before - step;
        const double below = numbers(evaluation.run(total))[0];
        x = before;
        // Second-order error of the difference, and rounding of a sum of some tens.
        EXPECT_NEAR(gradient[e], (above - below) / (2 * step), 1e-6 * std::max(1.0, std::abs(gradient[e]))) << "element " << e;
      }
    }
  }
}

TEST(Contract, AReplicaWithoutRowsAddsZeroToGradients) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type);
    const auto layer = made(row);
    LayerContext::Settings settings = settings_of("float64");
    settings.global_rows = 3;  // of the other replicas
    const TracedLayer traced(*layer, types_of(row, 0), settings);
    const Symbol total = weighed(traced.outputs);
    std::vector<Symbol> variables;
    for (const Weight& weight : traced.weights.all()) {
      if (weight.variable.trainable) variables.push_back(traced.graph->variable(weight.variable));
    }
    const Symbol one = traced.graph->constant(DType::f64, 1);
    Evaluation evaluation;
    feed(evaluation, traced);
    for (const Symbol gradient : differentiate({&total, 1}, {&one, 1}, variables)) {
      ASSERT_TRUE(gradient.valid());
      for (const double g : numbers(evaluation.run(gradient))) EXPECT_EQ(g, 0);
    }
  }
}

}  // namespace
}  // namespace lockstep
