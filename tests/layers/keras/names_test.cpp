#include "layers/names/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/model/support.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;

struct Named {
  std::unique_ptr<Model> model;
  ModelShapes shapes;
  std::vector<WeightName> names;

  explicit Named(std::unique_ptr<Model> made) : model(std::move(made)), shapes(trace_shapes(*model)), names(names_of(*model, shapes.weights)) {}
  static Named stored(const std::string& name) {
    const LayerRegistry registry = test_registry();
    return Named(build_from_keras(stored_config(name), {registry, {}, {}, {}, {}}).model);
  }
  const WeightName& of(const std::string& path) const {
    for (const WeightName& name : names) {
      if (name.weight->variable.path == path) return name;
    }
    throw std::out_of_range(path);
  }
  std::vector<std::string> object_places() const {
    std::vector<std::string> result;
    for (const WeightName& name : names) result.push_back(name.object_path + " " + std::to_string(name.object_index));
    return result;
  }
};

std::vector<std::string> paths_of(const Model& model) {
  std::vector<std::string> result;
  for (const ObjectGroup& group : object_groups(model)) result.push_back(group.path + ": " + group.name);
  return result;
}

// The groups that Keras 3.15 wrote for this model.
TEST(Names, AreThoseOfKerasFilesForModelsInModels) {
  const Named nested = Named::stored("nested_keras3");
  EXPECT_THAT(nested.object_places(), ElementsAre("layers/sequential/layers/dense 0", "layers/sequential/layers/dense 1", "layers/sequential/layers/layer_normalization 0", "layers/sequential/layers/layer_normalization 1",
                                                  "layers/functional/layers/functional/layers/dense 0", "layers/functional/layers/functional/layers/dense 1", "layers/functional/layers/batch_normalization 0",
                                                  "layers/functional/layers/batch_normalization 1", "layers/functional/layers/batch_normalization 2", "layers/functional/layers/batch_normalization 3",
                                                  "layers/functional/layers/dense 0", "layers/functional/layers/dense 1", "layers/dense 0", "layers/dense 1"));
  EXPECT_THAT(paths_of(*nested.model), testing::UnorderedElementsAre(
      ": outer", "layers/input_layer: c", "layers/sequential: seq", "layers/sequential/layers/dense: dense", "layers/sequential/layers/layer_normalization: ln", "layers/functional: mid", "layers/functional/layers/input_layer: b",
      "layers/functional/layers/functional: leaf", "layers/functional/layers/functional/layers/input_layer: a", "layers/functional/layers/functional/layers/dense: dense", "layers/functional/layers/batch_normalization: bn",
      "layers/functional/layers/dense: dense", "layers/concatenate: cat", "layers/dense: dense"));
  EXPECT_EQ(nested.of("mid/leaf/dense/kernel").keras3_path, "dense/kernel");
  EXPECT_EQ(nested.of("seq/ln/gamma").keras3_path, "seq/ln/gamma");
  EXPECT_EQ(nested.of("seq/ln/gamma").keras2_path, "ln/gamma");
  EXPECT_EQ(nested.of("mid/dense/bias").keras2_object_path, "layer_with_weights-1/layer_with_weights-2");
}

TEST(Names, PutTrainableWeightsOfALegacyGroupFirst) {
  const Named nested = Named::stored("nested_keras3");
  EXPECT_EQ(nested.of("mid/bn/moving_mean").top_layer, "mid");
  EXPECT_EQ(nested.of("mid/bn/moving_mean").legacy_index, 6);
  EXPECT_EQ(nested.of("mid/dense/kernel").legacy_index, 4);
  EXPECT_EQ(nested.of("mid/leaf/dense/bias").legacy_index, 1);
}

TEST(Names, CountClassesWithInputLayersAndWithoutUsersNames) {
  const Named dot(model_from(R"({"inputs": [{"name": "main", "shape": [24]}, {"name": "vector", "shape": [8]}],
    "layers": [{"name": "dense_1", "type": "Dense", "units": 8, "inputs": "main"}, {"name": "dense", "type": "Dense", "units": 8}, {"type": "Add", "inputs": ["dense", "vector"]}]})"));
  EXPECT_THAT(paths_of(*dot.model), IsSupersetOf({"layers/dense: dense_1", "layers/dense_1: dense", "layers/input_layer: main", "layers/input_layer_1: vector", "layers/add: add"}));
  EXPECT_EQ(dot.of("dense/kernel").object_path, "layers/dense_1");
}

TEST(Names, LeaveInputLayersOutOfASequential) {
  const Named retrieval = Named::stored("retrieval_keras3");
  EXPECT_THAT(paths_of(*retrieval.model), ElementsAre(": retrieval", "layers/dense: hidden", "layers/dense_1: image_embedding"));
  EXPECT_EQ(retrieval.of("hidden/kernel").keras3_path, "retrieval/hidden/kernel");
  EXPECT_EQ(retrieval.of("hidden/kernel").keras2_path, "hidden/kernel");
  EXPECT_THAT(top_layers(*retrieval.model), ElementsAre("hidden", "image_embedding"));
}

TEST(Names, EncodeSlashesOfLayersNamesInExtractPaths) {
  const Named odd = Named::stored("odd_names_keras2");
  const WeightName& name = odd.of("tower/dense_1/kernel");
  EXPECT_THAT(name.components, ElementsAre("tower/dense_1", "kernel"));
  EXPECT_EQ(name.extract_path, "tower%2Fdense_1/kernel");
  EXPECT_EQ(odd.of("kernel/kernel").extract_path, "kernel/kernel");
}

TEST(Names, KeepLayersOfACustomTypeUnderAttributes) {
  const Named custom(model_from(R"({"inputs": [{"name": "x", "shape": [4]}], "layers": [{"name": "first", "type": "tower"}, {"name": "second", "type": "tower"}]})",
                                R"({"tower": {"inputs": ["x"], "weights": {"count": {"shape": [1], "trainable": false}, "shift": {"shape": ["last"]}},
      "layers": [{"name": "hidden", "type": "Dense", "units": 4}, {"name": "call", "type": "Add", "inputs": ["hidden", "shift"]}, {"type": "Multiply", "inputs": ["call", "count"]}]}})"));
  EXPECT_THAT(custom.object_places(), ElementsAre("layers/tower 0", "layers/tower 1", "layers/tower/hidden 0", "layers/tower/hidden 1", "layers/tower_1 0", "layers/tower_1 1", "layers/tower_1/hidden 0", "layers/tower_1/hidden 1"));
  EXPECT_EQ(custom.names[0].weight->name, "shift");  // trainable before the others
  EXPECT_THAT(paths_of(*custom.model), IsSupersetOf({"layers/tower/call_: call", "layers/tower/multiply: multiply"}));
  EXPECT_EQ(custom.of("first/hidden/kernel").extract_path, "first/hidden/kernel");
  EXPECT_EQ(custom.of("first/hidden/kernel").keras2_object_path, "layer_with_weights-0/hidden");
}

TEST(Names, FollowTheAttributesOfAUsersClass) {
  auto made = model_from(R"({"inputs": [{"name": "x", "shape": [10]}], "layers": [{"name": "test_layer", "type": "Identity", "inputs": "x"}, {"name": "dense", "type": "Dense", "units": 1, "inputs": "x"}], "outputs": ["dense", "test_layer"]})");
  made->name = "demo";
  made->class_name = "Demo";
  made->registered_name = "lockstep>Demo";
  made->object_paths = {{"dense", "dense_layer"}, {"test_layer", "layers/test_layer"}};
  const Named demo(std::move(made));
  // demo_k3_keras, written by real Keras.
  EXPECT_THAT(paths_of(*demo.model), testing::UnorderedElementsAre(": demo", "dense_layer: dense", "layers/test_layer: test_layer"));
  EXPECT_EQ(demo.of("dense/bias").object_index, 1);
  EXPECT_EQ(demo.of("dense/kernel").keras3_path, "demo/dense/kernel");
  EXPECT_EQ(demo.of("dense/kernel").keras2_path, "demo/dense/kernel");
}

TEST(AttributeName, IsAnIdentifierThatKerasDoesNotTake) {
  EXPECT_EQ(attribute_name("hidden"), "hidden");
  EXPECT_EQ(attribute_name("a.b-c"), "a_b_c");
  EXPECT_EQ(attribute_name("1st"), "_1st");
  EXPECT_EQ(attribute_name("weights"), "weights_");
}

}  // namespace
}  // namespace lockstep
