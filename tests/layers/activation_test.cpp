#include "layers/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;

std::vector<double> applied(const Value& identifier, std::vector<double> x, int semantics = 3) {
  Graph graph;
  const auto size = static_cast<int64_t>(x.size());
  return numbers(Evaluation().run(make_activation(identifier).apply(graph.constant(f64({1, size}, std::move(x))), semantics)));
}

TEST(Activation, KnowsEveryNameOfKeras) {
  for (const char* name : {"celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6",
                           "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh", "tanh_shrink"}) {
    SCOPED_TRACE(name);
    for (const double y : applied(name, {-0.75, 0.5, 1.25, 0.125})) EXPECT_TRUE(std::isfinite(y));
    const Value written = make_activation(name).written();
    EXPECT_EQ(make_activation(written).written(), written);
  }
}

// By hand from the formulas.
TEST(Activation, AppliesTheNamedFunctionWithKerassDefaults) {
  EXPECT_EQ(applied({}, {-2, 3}), (std::vector<double>{-2, 3}));
  EXPECT_EQ(applied("relu", {-2, 3}), (std::vector<double>{0, 3}));
  EXPECT_EQ(applied("leaky_relu", {-2, 3}), (std::vector<double>{-0.4, 3}));
  EXPECT_EQ(applied("exponential", {0}), (std::vector<double>{1}));
  EXPECT_EQ(applied("hard_shrink", {0.4, 0.6}), (std::vector<double>{0, 0.6}));
  EXPECT_EQ(applied("squareplus", {0}), (std::vector<double>{1}));
  EXPECT_DOUBLE_EQ(applied("gelu", {1})[0], 0.5 * (1 + std::erf(std::sqrt(0.5))));
  EXPECT_EQ(applied("glu", {2, 0}), (std::vector<double>{1}));
}

TEST(Activation, HardSigmoidIsAnotherFunctionInKeras2) {
  EXPECT_DOUBLE_EQ(applied("hard_sigmoid", {1}, 3)[0], 4.0 / 6);
  EXPECT_DOUBLE_EQ(applied("hard_sigmoid", {1}, 2)[0], 0.7);
}

TEST(Activation, TakesArgumentsFromLayersAndJobs) {
  EXPECT_EQ(applied(Map{{"class_name", "LeakyReLU"}, {"config", Map{{"name", "a"}, {"trainable", true}, {"dtype", "float32"}, {"alpha", 0.25}}}}, {-2}), (std::vector<double>{-0.5}));
  EXPECT_EQ(applied(Map{{"class_name", "LeakyReLU"}, {"config", Map{}}}, {-2}), (std::vector<double>{-0.6})) << "the layer's default is not the function's";
  EXPECT_EQ(applied(Map{{"type", "relu"}, {"max_value", 1}}, {-2, 3}), (std::vector<double>{0, 1}));
  EXPECT_EQ(applied(Map{{"type", "threshold"}, {"threshold", 1}, {"default_value", 9}}, {0, 3}), (std::vector<double>{9, 3}));
  EXPECT_EQ(applied(Map{{"module", "builtins"}, {"class_name", "function"}, {"config", "relu"}, {"registered_name", "function"}}, {-1}), (std::vector<double>{0}));
}

TEST(Activation, IsWrittenAsKerasReadsIt) {
  EXPECT_EQ(make_activation({}).written(), Value("linear"));
  EXPECT_EQ(make_activation("swish").written(), Value("silu"));
  const Value layer = make_activation(Map{{"class_name", "ReLU"}, {"config", Map{{"max_value", 6.0}}}}).written();
  EXPECT_EQ(layer.at("class_name"), Value("ReLU"));
  EXPECT_EQ(layer.at("config").at("max_value"), Value(6.0));
  EXPECT_EQ(make_activation(layer).written(), layer);
}

TEST(Activation, TellsUnknownNames) {
  EXPECT_NE(thrown([] { make_activation("sofmax"); }).find("error[Y30] unknown activation 'sofmax'; did you mean 'softmax'?"), std::string::npos);
  EXPECT_NE(thrown([] { make_activation("<lambda>"); }).find("restore.custom_objects"), std::string::npos);
  EXPECT_NE(thrown([] { make_activation(Map{{"type", "tanh"}, {"alpha", 1}}); }).find("unknown key 'alpha' in 'tanh'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
