#include "layers/custom/custom_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/model/support.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string types = R"({
  "tower": {"parameters": {"units": 32}, "inputs": ["x"],
            "layers": [{"name": "hidden", "type": "Dense", "units": "$units", "activation": "relu", "inputs": ["x"]}, {"name": "out", "type": "Dense", "units": "$units"}], "outputs": ["out"]},
  "scale_and_shift": {"parameters": {"factor": 1.0}, "inputs": ["x"], "weights": {"shift": {"shape": ["last"], "initializer": "zeros"}},
            "layers": [{"name": "scaled", "type": "Rescaling", "scale": "$factor"}, {"name": "shifted", "type": "Add", "inputs": ["scaled", "shift"]}], "outputs": ["shifted"]},
  "EmbeddingDotProduct": {"parameters": {"embedding_layer_name": null}, "inputs": ["x"],
            "layers": [{"name": "product", "type": "Dense", "use_bias": false, "borrow": {"kernel": "$embedding_layer_name/kernel", "transposed": true}}], "outputs": ["product"]},
  "pair": {"parameters": {"width": null}, "inputs": ["x"], "layers": [{"name": "first", "type": "tower", "units": "$width"}, {"name": "second", "type": "scale_and_shift"}]}})";

std::string one_layer(const std::string& layer) { return R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [)" + layer + "]}"; }

TEST(CustomLayer, PutsParametersIntoItsGraph) {
  auto model = model_from(one_layer(R"({"name": "tower", "type": "tower", "units": 6}, {"name": "standard", "type": "tower"})"), types);
  EXPECT_THAT(weights_of(*model), ElementsAre("tower/hidden/kernel (4, 6)", "tower/hidden/bias (6,)", "tower/out/kernel (6, 6)", "tower/out/bias (6,)",  //
                                              "standard/hidden/kernel (6, 32)", "standard/hidden/bias (32,)", "standard/out/kernel (32, 32)", "standard/out/bias (32,)"));
}

TEST(CustomLayer, OwnsWeightsThatItsLayersRead) {
  auto model = model_from(one_layer(R"({"name": "moved", "type": "scale_and_shift", "factor": 3.0})"), types);
  EXPECT_THAT(weights_of(*model), ElementsAre("moved/shift (4,)"));
  EXPECT_EQ(trace_shapes(*model).calls.at("moved")[0][0].shape, (Shape{-1, 4}));
}

TEST(CustomLayer, Nests) {
  auto model = model_from(one_layer(R"({"name": "p", "type": "pair", "width": 5})"), types);
  EXPECT_THAT(weights_of(*model), ElementsAre("p/first/hidden/kernel (4, 5)", "p/first/hidden/bias (5,)", "p/first/out/kernel (5, 5)", "p/first/out/bias (5,)", "p/second/shift (5,)"));
}

TEST(CustomLayer, SharesItsWeightsBetweenCalls) {
  auto model = model_from(one_layer(R"({"name": "tower", "type": "tower", "units": 4}, {"name": "again", "use": "tower"})"), types);
  EXPECT_EQ(weights_of(*model).size(), 4u);
}

TEST(CustomLayer, NamesItsParametersWhenOneIsUnknownOrMissing) {
  EXPECT_THAT(problems_of([] { model_from(one_layer(R"({"type": "tower", "unts": 6})"), types); }),
              HasSubstr("Y35 model.layers[0]: custom layer 'tower' has no parameter 'unts'; did you mean 'units'?; its parameters: units (32)"));
  EXPECT_THAT(problems_of([] { model_from(one_layer(R"({"type": "pair"})"), types); }), HasSubstr("Y35 model.layers[0]: custom layer 'pair' needs its parameter 'width'; its parameters: width (required)"));
}

TEST(CustomLayers, AreCheckedWhereNoLayerIsOfTheirType) {
  const auto problems = [](const std::string& section) { return problems_of([&] { test_registry(parse(section)); }); };
  EXPECT_THAT(problems(R"({"t": {"inputs": ["x"], "layers": [{"type": "Dense", "units": "$unit"}], "parameters": {"units": 1}}})"), HasSubstr("Y35 '$unit' is no parameter of custom layer 't'; did you mean 'units'?"));
  EXPECT_THAT(problems(R"({"t": {"inputs": ["x"], "layers": [{"type": "Dens"}]}})"), HasSubstr("Y30 custom layer 't': unknown layer 'Dens'; did you mean 'Dense'?"));
  EXPECT_THAT(problems(R"({"t": {"inputs": ["x"], "layers": [{"type": "u"}]}, "u": {"inputs": ["x"], "layers": [{"type": "t"}]}})"), HasSubstr("Y31 custom layer 't' contains itself: t -> u -> t"));
  EXPECT_THAT(problems(R"({"Dense": {"inputs": ["x"], "layers": []}})"), HasSubstr("Y29 custom layer 'Dense' has the name of a known layer"));
  EXPECT_THAT(problems(R"({"t": {"inputs": ["x"], "layer": []}})"), HasSubstr("Y09 unknown key 'layer' in 'custom_layers.t'; did you mean 'layers'?"));
}

TEST(Substitute, PutsWholeValuesAndTextInsideText) {
  const CustomType type{"t", {}, {}, {}, {}, {}, {}, {}};
  const std::vector<std::pair<std::string, Value>> parameters = {{"name", "image"}, {"sizes", parse("[1, 2]")}};
  EXPECT_EQ(substitute(parse(R"({"a": "$name/kernel", "b": ["$sizes"], "c": "5 $", "d": "$name$name"})"), parameters, type), parse(R"({"a": "image/kernel", "b": [[1, 2]], "c": "5 $", "d": "imageimage"})"));
  EXPECT_THAT(problems_of([&] { substitute("$sizes/kernel", parameters, type); }), HasSubstr("Y35 '$sizes' stands inside text, so it must be text or a number"));
}

// Seed story (b): the borrowed kernel is one variable, and the borrower runs after its owner though the outputs name it first.
TEST(Borrow, SharesOneVariableWithItsOwner) {
  auto model = model_from(R"({"inputs": [{"name": "main", "shape": [64]}, {"name": "vector", "shape": [64]}],
    "layers": [{"name": "hidden", "type": "Dense", "units": 256, "activation": "relu", "inputs": "main"}, {"name": "image_embedding", "type": "Dense", "units": 64},
               {"name": "dot_product", "type": "EmbeddingDotProduct", "embedding_layer_name": "image_embedding", "inputs": "vector"}],
    "outputs": ["dot_product", "image_embedding"]})",
                          types);
  EXPECT_THAT(weights_of(*model), ElementsAre("hidden/kernel (64, 256)", "hidden/bias (256,)", "image_embedding/kernel (256, 64)", "image_embedding/bias (64,)"));
  EXPECT_EQ(trace_shapes(*model).calls.at("dot_product")[0][0].shape, (Shape{-1, 256}));
}

TEST(Borrow, TellsWhatDoesNotExistAndWhatDoesNotFit) {
  const auto problems = [](const std::string& borrow) {
    return problems_of([&] {
      auto model = model_from(one_layer(R"({"name": "owner", "type": "Dense", "units": 3}, {"name": "borrower", "type": "Dense", "use_bias": false, "borrow": )" + borrow + "}"));
      trace_shapes(*model);
    });
  };
  EXPECT_EQ(problems(R"({"kernel": "owner/kernel", "transposed": true})"), "no error");
  EXPECT_THAT(problems(R"({"kernel": "ownr/kernel"})"), HasSubstr("Y36 layer 'borrower' borrows 'ownr/kernel': there is no layer 'ownr'; did you mean 'owner'?"));
  EXPECT_THAT(problems(R"({"kernel": "owner/kernl", "transposed": true})"), HasSubstr("Y36 layer 'borrower' (Dense): borrows 'owner/kernl'"));
  EXPECT_THAT(problems(R"({"kernel": "owner/kernel"})"), HasSubstr("set transposed: true?"));
  EXPECT_THAT(problems(R"({"transposed": true})"), HasSubstr("Y36 model.layers[1].borrow: names no weight"));
}

TEST(Borrow, RefusesLayersThatNeedEachOther) {
  EXPECT_THAT(problems_of([] { model_from(one_layer(R"({"name": "a", "type": "Dense", "units": 4, "borrow": {"kernel": "b/kernel"}}, {"name": "b", "type": "Dense", "units": 4})")); }),
              HasSubstr("Y36 each of these layers needs the others' outputs or weights first: a, b"));
}

}  // namespace
}  // namespace lockstep
