#include "layers/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/summary/summary.h"
#include "tests/layers/model/support.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SnakeCase, NamesClassesAsKerasDoes) {
  // keras/src/utils/naming.py, to_snake_case.
  EXPECT_EQ(snake_case("Dense"), "dense");
  EXPECT_EQ(snake_case("Conv2DTranspose"), "conv2d_transpose");
  EXPECT_EQ(snake_case("PReLU"), "p_re_lu");
  EXPECT_EQ(snake_case("ReLU"), "re_lu");
  EXPECT_EQ(snake_case("EmbeddingDotProduct"), "embedding_dot_product");
  EXPECT_EQ(snake_case("GlobalAveragePooling1D"), "global_average_pooling1d");
  EXPECT_EQ(snake_case("LSTM"), "lstm");
}

TEST(BuildModel, ChainsLayersAndNamesThemAsKerasDoes) {
  auto model = model_from(R"({"inputs": [{"name": "image", "shape": [4, 4], "dtype": "uint8"}],
    "layers": [{"type": "Rescaling", "scale": 0.5}, {"type": "Flatten"}, {"type": "Dense", "units": 8}, {"type": "Dense", "units": 3, "name": "logits"}, {"type": "Dense", "units": 2}]})");
  EXPECT_THAT(layer_names(*model), ElementsAre("rescaling", "flatten", "dense", "logits", "dense_1"));
  EXPECT_THAT(weights_of(*model), ElementsAre("dense/kernel (16, 8)", "dense/bias (8,)", "logits/kernel (8, 3)", "logits/bias (3,)", "dense_1/kernel (3, 2)", "dense_1/bias (2,)"));
  EXPECT_THAT(output_names(*model), ElementsAre("dense_1"));
}

TEST(BuildModel, WiresInputsOutputsAndSharedLayersByName) {
  auto model = model_from(R"({"inputs": [{"name": "left", "shape": [4]}, {"name": "right", "shape": [4]}],
    "layers": [{"name": "tower", "type": "Dense", "units": 3, "inputs": "left"},
               {"name": "again", "use": "tower", "inputs": ["right"]},
               {"name": "both", "type": "Concatenate", "inputs": ["tower", "again"]},
               {"name": "score", "type": "Dense", "units": 1}],
    "outputs": ["score", "again"]})");
  EXPECT_THAT(weights_of(*model), ElementsAre("tower/kernel (4, 3)", "tower/bias (3,)", "score/kernel (6, 1)", "score/bias (1,)"));
  EXPECT_THAT(output_names(*model), ElementsAre("score", "again"));
}

TEST(BuildModel, TellsObserversOfEveryCallUnderItsOwnName) {
  auto model = model_from(R"({"inputs": [{"name": "x", "shape": [4]}, {"name": "y", "shape": [4]}],
    "layers": [{"name": "tower", "type": "Dense", "units": 3, "inputs": "x"}, {"name": "again", "use": "tower", "inputs": "y"}, {"name": "sum", "type": "Add", "inputs": ["tower", "again"]}]})");
  const ModelShapes shapes = trace_shapes(*model);
  EXPECT_EQ(shapes.calls.at("tower").size(), 2u);
  EXPECT_EQ(shapes.calls.at("again").size(), 1u);
  EXPECT_EQ(shapes.calls.at("again")[0][0].shape, (Shape{-1, 3}));
}

TEST(BuildModel, NestsModelsWhosePathsNest) {
  auto model = model_from(R"({"inputs": [{"name": "x", "shape": [5]}],
    "layers": [{"name": "inner", "type": "Sequential", "layers": [{"type": "Dense", "units": 4}, {"type": "Dense", "units": 3}]},
               {"name": "outer", "inputs": [{"name": "a", "from": "inner"}, "x"], "layers": [{"type": "Concatenate", "inputs": ["a", "x"]}, {"type": "Dense", "units": 2}]},
               {"name": "twice", "use": "inner", "inputs": "x"},
               {"type": "Concatenate", "inputs": ["outer", "twice"]}]})");
  EXPECT_THAT(weights_of(*model), ElementsAre("inner/dense/kernel (5, 4)", "inner/dense/bias (4,)", "inner/dense_1/kernel (4, 3)", "inner/dense_1/bias (3,)", "outer/dense/kernel (8, 2)", "outer/dense/bias (2,)"));
}

TEST(BuildModel, OrdersLayersByDepthThenByTheWalkFromSortedOutputs) {
  // The order that Keras gave the same graph, tests/data/models/multi_io_dict_keras3.json.
  auto model = model_from(R"({"inputs": [{"name": "zeta", "shape": [12]}, {"name": "alpha", "shape": [12]}, {"name": "mid", "shape": [3]}],
    "layers": [{"name": "out_a", "type": "Dense", "units": 2, "inputs": "av"},
               {"name": "shared", "type": "Dense", "units": 8, "inputs": "zeta"}, {"name": "again", "use": "shared", "inputs": "alpha"},
               {"name": "cos", "type": "Dot", "axes": 1, "normalize": true, "inputs": ["shared", "again"]},
               {"name": "mul", "type": "Multiply", "inputs": ["shared", "again"]},
               {"name": "sub", "type": "Subtract", "inputs": ["shared", "again"]}, {"name": "mx", "type": "Maximum", "inputs": ["shared", "again"]},
               {"name": "cat", "type": "Concatenate", "inputs": ["mul", "mid", "cos"]}, {"name": "av", "type": "Average", "inputs": ["sub", "mx"]},
               {"name": "out_z", "type": "Dense", "units": 5, "inputs": "cat"}],
    "outputs": {"second": "out_a", "first": "out_z", "cosine": "cos"}})");
  EXPECT_THAT(top_layers(*model), ElementsAre("zeta", "alpha", "shared", "cos", "mul", "mid", "sub", "mx", "cat", "av", "out_z", "out_a"));
  EXPECT_THAT(output_names(*model), ElementsAre("second", "first", "cosine"));
}

TEST(BuildModel, TellsEveryMistakeAtOnce) {
  const std::string problems = problems_of([] {
    model_from(R"({"inputs": [{"name": "x", "shape": [4]}],
      "layers": [{"name": "a", "type": "Dens", "units": 4}, {"name": "b", "type": "Dense", "unit": 3}, {"name": "b", "type": "Flatten"},
                 {"name": "c", "type": "Add", "inputs": ["b", "ghost"]}, {"name": "d", "use": "nobody"}], "outputs": ["nowhere"]})");
  });
  EXPECT_THAT(problems, HasSubstr("Y30 unknown layer 'Dens'; did you mean 'Dense'?"));
  EXPECT_THAT(problems, HasSubstr("Y09 unknown key 'unit' in 'model.layers[1]'; did you mean 'units'?"));
  EXPECT_THAT(problems, HasSubstr("Y29 layer name 'b' used at two places"));
  EXPECT_THAT(problems, HasSubstr("Y31 layer 'c' reads 'ghost', which no layer produces"));
  EXPECT_THAT(problems, HasSubstr("Y31 layer 'd' uses 'nobody'"));
  EXPECT_THAT(problems, HasSubstr("Y31 'model.outputs' reads 'nowhere', which no layer produces"));
}

TEST(BuildModel, RefusesCyclesAndWhatLeadsNowhere) {
  EXPECT_THAT(problems_of([] { model_from(R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [{"name": "a", "type": "Add", "inputs": ["x", "b"]}, {"name": "b", "type": "Flatten", "inputs": "a"}]})"); }),
              HasSubstr("Y31 cycle: a -> b -> a"));
  EXPECT_THAT(problems_of([] { model_from(R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [{"name": "a", "type": "Flatten"}, {"name": "b", "type": "Flatten", "inputs": "x"}]})"); }),
              HasSubstr("Y31 layer 'a' leads to no output"));
  EXPECT_THAT(problems_of([] { model_from(R"({"inputs": [{"name": "x", "shape": [4]}, {"name": "y", "shape": [4]}], "layers": [{"name": "a", "type": "Flatten", "inputs": "x"}]})"); }),
              HasSubstr("Y31 input 'y' of 'model' is read by no layer"));
  EXPECT_THAT(problems_of([] { model_from(R"({"inputs": [{"name": "x", "shape": [4]}, {"name": "y", "shape": [4]}], "layers": [{"name": "a", "type": "Flatten"}], "outputs": "a"})"); }),
              HasSubstr("Y31 layer 'a' is the first and there are 2 inputs"));
}

TEST(BuildModel, RefusesTwoLayersWithOnePath) {
  EXPECT_THAT(problems_of([] { model_from(R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [{"name": "tower", "layers": [{"name": "dense", "type": "Dense", "units": 2}]}, {"name": "tower/dense", "type": "Dense", "units": 2}]})"); }),
              HasSubstr("Y29 2 layers have the path 'tower/dense'"));
}

TEST(BuildModel, NamesTheLinesOfANameUsedTwice) {
  const auto source = std::make_shared<SourceText>(SourceText{"job.yaml", ""});
  Value section = parse(R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [{"name": "a", "type": "Flatten"}, {"name": "a", "type": "Flatten"}]})");
  section.find("layers")->as_list()[0].find("name")->with_place({source, 9, 14});
  section.find("layers")->as_list()[1].find("name")->with_place({source, 15, 14});
  try {
    build_model(section, test_registry());
    FAIL() << "a name used twice was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].text(), "error[Y29] job.yaml:15:14: layer name 'a' used at lines 9 and 15 of 'model'");
    EXPECT_EQ(error.exit_code(), ExitCode::job);
  }
}

TEST(ModelCall, TellsTheLayerAndTheShapesThatLedToAMisfit) {
  auto model = model_from(R"({"inputs": [{"name": "x", "shape": [4]}, {"name": "y", "shape": [5]}],
    "layers": [{"name": "a", "type": "Dense", "units": 3, "inputs": "x"}, {"name": "inner", "layers": [{"name": "sum", "type": "Add", "inputs": ["a", "y"]}], "inputs": ["a", "y"]}]})");
  const std::string problems = problems_of([&] { trace_shapes(*model); });
  EXPECT_THAT(problems, HasSubstr("Y32 layer 'inner/sum' (Add): "));
  EXPECT_THAT(problems, HasSubstr("shapes up to it: a (None, 3), y (None, 5)"));
  EXPECT_THAT(problems, Not(HasSubstr("layer 'inner' (")));
}

TEST(Shapes, KeepsAxesThatFollowTheBatchOpen) {
  auto model = model_from(R"({"inputs": [{"name": "x", "shape": [null, 6]}], "layers": [{"name": "a", "type": "Dense", "units": 3}]})");
  const ModelShapes shapes = trace_shapes(*model);
  EXPECT_EQ(shapes.inputs[0].shape, (Shape{-1, -1, 6}));
  EXPECT_EQ(shapes.calls.at("a")[0][0].shape, (Shape{-1, -1, 3}));
}

TEST(Summary, CountsAsKerasDoes) {
  auto model = model_from(R"({"name": "digits", "inputs": [{"name": "x", "shape": [784]}],
    "layers": [{"name": "hidden", "type": "Dense", "units": 256, "activation": "relu"}, {"type": "BatchNormalization"}, {"name": "logits", "type": "Dense", "units": 10}]})");
  const Summary summary = summarize(*model);
  ASSERT_EQ(summary.rows.size(), 4u);
  EXPECT_EQ(summary.rows[0].type, "InputLayer");
  EXPECT_EQ(summary.rows[1].parameters, 784 * 256 + 256);
  EXPECT_EQ(summary.rows[2].parameters, 4 * 256);
  EXPECT_EQ(summary.rows[3].output_shape, "(None, 10)");
  EXPECT_THAT(summary.rows[3].connected_to, ElementsAre("batch_normalization[0][0]"));
  EXPECT_EQ(summary.not_trainable, 2 * 256);
  EXPECT_THAT(summary.text(), HasSubstr("Total params: 204,554 (799.04 KB)\n"));
}

}  // namespace
}  // namespace lockstep
