#include "layers/keras/keras_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/model/support.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string dot_product = R"({"EmbeddingDotProduct": {"parameters": {"embedding_layer_name": null}, "inputs": ["x"],
  "layers": [{"name": "product", "type": "Dense", "use_bias": false, "borrow": {"kernel": "$embedding_layer_name/kernel", "transposed": true}}], "outputs": ["product"]}})";

KerasModel read(const Value& config, const std::string& custom_objects = "null", const std::string& custom_layers = "null") {
  const LayerRegistry registry = test_registry(parse(custom_layers));
  KerasReading reading{registry, CustomObjects(parse(custom_objects)), {}, {}, {}};
  return build_from_keras(config, reading);
}

std::string problems_in(const Value& config, const std::string& custom_objects = "null", const std::string& custom_layers = "null") {
  return problems_of([&] { read(config, custom_objects, custom_layers); });
}

/// Names in the order in which Keras wrote them.
std::vector<std::string> names_in(const Value& config) {
  std::vector<std::string> result;
  for (const Value& layer : config.at("config").at("layers").as_list()) result.push_back(layer.at("config").at("name").as_string());
  return result;
}

/// A functional model of one layer of this class after an input (4): a file's smallest.
Value with_layer(const std::string& layer) {
  return parse(R"({"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "Functional", "config": {"name": "tiny", "trainable": true, "layers": [
    {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32", "name": "x"}, "registered_name": null, "name": "x", "inbound_nodes": []},
    )" + layer + R"(], "input_layers": ["x", 0, 0], "output_layers": ["d1", 0, 0]}})");
}

const std::string from_x = R"("name": "d1", "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"shape": [null, 4], "dtype": "float32", "keras_history": ["x", 0, 0]}}], "kwargs": {}}]})";

TEST(BuildFromKeras, ReadsASequential) {
  const KerasModel read_model = read(stored_config("retrieval_keras3"));
  EXPECT_EQ(read_model.model->class_name, "Sequential");
  EXPECT_EQ(read_model.model->inputs[0].name, "query");
  EXPECT_THAT(weights_of(*read_model.model), ElementsAre("hidden/kernel (64, 24)", "hidden/bias (24,)", "image_embedding/kernel (24, 32)", "image_embedding/bias (32,)"));
  EXPECT_THAT(output_names(*read_model.model), ElementsAre("image_embedding"));
}

TEST(BuildFromKeras, ReadsBothDialectsToOneModel) {
  for (const std::string dialect : {"multi_io_dict_keras2", "multi_io_dict_keras3"}) {
    const Value config = stored_config(dialect);
    const KerasModel read_model = read(config);
    EXPECT_THAT(weights_of(*read_model.model), ElementsAre("shared/kernel (12, 8)", "shared/bias (8,)", "out_z/kernel (12, 5)", "out_z/bias (5,)", "out_a/kernel (8, 2)", "out_a/bias (2,)")) << dialect;
    EXPECT_THAT(output_names(*read_model.model), ElementsAre("second", "first", "cosine")) << dialect;
    EXPECT_EQ(top_layers(*read_model.model), names_in(config)) << dialect;
  }
}

TEST(BuildFromKeras, ReadsModelsInModelsOfBothDialects) {
  // Keras 2 counts the calls of a model inside from 1.
  for (const std::string dialect : {"nested_keras2", "nested_keras3"}) {
    const KerasModel read_model = read(stored_config(dialect));
    const std::string leaf = dialect == "nested_keras2" ? "leaf_dense" : "dense";
    EXPECT_THAT(weights_of(*read_model.model),
                ElementsAre("seq/dense/kernel (6, 6)", "seq/dense/bias (6,)", "seq/ln/gamma (6,)", "seq/ln/beta (6,)", "mid/leaf/" + leaf + "/kernel (6, 5)", "mid/leaf/" + leaf + "/bias (5,)", "mid/bn/gamma (5,)",
                            "mid/bn/beta (5,)", "mid/bn/moving_mean (5,)", "mid/bn/moving_variance (5,)", "mid/dense/kernel (5, 4)", "mid/dense/bias (4,)", "dense/kernel (8, 3)", "dense/bias (3,)"))
        << dialect;
    EXPECT_EQ(trace_shapes(*read_model.model).calls.at("mid").size(), 2u) << dialect;
  }
}

TEST(BuildFromKeras, ReadsAMappingOfInputs) {
  const KerasModel read_model = read(stored_config("dict_inputs_keras3"));
  ASSERT_EQ(read_model.model->inputs.size(), 2u);
  EXPECT_EQ(read_model.model->inputs[0].name, "user_in");
  EXPECT_EQ(read_model.model->inputs[0].key, "user");
  EXPECT_EQ(read_model.model->inputs[1].name, "item_in");
}

TEST(BuildFromKeras, BindsACustomClassToATypeOfTheJob) {
  for (const std::string dialect : {"embedding_dot_keras2", "embedding_dot_keras3"}) {
    const KerasModel read_model = read(stored_config(dialect), R"({"lockstep>EmbeddingDotProduct": "EmbeddingDotProduct"})", dot_product);
    EXPECT_EQ(weights_of(*read_model.model).size(), 4u) << dialect;
    EXPECT_EQ(trace_shapes(*read_model.model).calls.at("dot_product")[0][0].shape, (Shape{-1, 16})) << dialect;
    EXPECT_EQ(registered_name_of(*read_model.model->layers.back()), "lockstep>EmbeddingDotProduct") << dialect;
  }
}

TEST(BuildFromKeras, NamesAnUnknownClassItsPlaceAndAStubToPaste) {
  const LayerRegistry registry = test_registry();
  KerasReading reading{registry, {}, {}, {}, {{"d1", "kernel", {4, 3}}, {"d1/inside", "bias", {3}}, {"other", "kernel", {9}}}};
  const Value config = with_layer(R"({"module": "my.layers", "class_name": "Tower", "config": {"name": "d1", "trainable": true, "ratio": 0.5, "mode": "wide"}, "registered_name": "my_package>Tower", )" + from_x);
  try {
    build_from_keras(config, reading);
    FAIL() << "an unknown class was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::data);
    EXPECT_EQ(error.problems()[0].code, "M20");
    EXPECT_EQ(error.problems()[0].message,
              "class 'Tower' (my_package>Tower, module 'my.layers') of layer 'tiny/d1' is not known: it is not Keras's, and the job does not declare it (custom_layers, restore.custom_objects). To declare it:\n"
              "custom_layers:\n"
              "  Tower:\n"
              "    parameters: {ratio: 0.5, mode: \"wide\"}\n"
              "    inputs: [x]\n"
              "    weights: {kernel: {shape: [4, 3]}}\n"
              "    # in the file, of a layer inside: inside/bias (3,)\n"
              "    layers: []    # what the class computes: {name: ..., type: ..., inputs: [x]}, ...\n"
              "restore:\n"
              "  custom_objects: {\"my_package>Tower\": Tower}");
  }
}

TEST(BuildFromKeras, NeverTakesAUsersClassForKerasOwn) {
  EXPECT_THAT(problems_in(with_layer(R"({"module": "my.layers", "class_name": "Dense", "config": {"name": "d1", "units": 3}, "registered_name": "my_package>Dense", )" + from_x)), HasSubstr("M20 class 'Dense' (my_package>Dense"));
}

TEST(BuildFromKeras, NamesTheKeyOfACustomClassThatItsTypeDoesNotHave) {
  const std::string layer = R"({"module": null, "class_name": "EmbeddingDotProduct", "config": {"name": "d1", KEY}, "registered_name": "lockstep>EmbeddingDotProduct", )" + from_x;
  const auto with = [&](const std::string& keys) {
    std::string text = layer;
    return with_layer(text.replace(text.find("KEY"), 3, keys));
  };
  EXPECT_THAT(problems_in(with(R"("embedding_layer_name": "x", "ratio": 2)"), "null", dot_product), HasSubstr("M24 class 'EmbeddingDotProduct' of layer 'tiny/d1': custom layer 'EmbeddingDotProduct' has no parameter 'ratio'"));
  EXPECT_THAT(problems_in(with(R"("trainable": true)"), "null", dot_product), HasSubstr("custom layer 'EmbeddingDotProduct' needs its parameter 'embedding_layer_name'"));
}

TEST(BuildFromKeras, NamesLambdaAndNeverRunsIt) {
  EXPECT_THAT(problems_in(with_layer(R"({"module": "keras.layers", "class_name": "Lambda", "config": {"name": "d1", "function": {"class_name": "__lambda__", "config": {"code": "4wMA"}}}, "registered_name": null, )" + from_x)),
              HasSubstr("M21 layer 'tiny/d1' (Lambda) contains Python code and cannot be loaded"));
}

TEST(BuildFromKeras, NamesKerasClassesThatAreNotBuiltInHere) {
  EXPECT_THAT(problems_in(with_layer(R"({"module": "keras.layers", "class_name": "Conv2DTranspos", "config": {"name": "d1"}, "registered_name": null, )" + from_x)), HasSubstr("M22 layer 'tiny/d1': class 'Conv2DTranspos' of Keras is not built in here"));
  EXPECT_THAT(problems_in(with_layer(R"({"module": "keras.src.ops.numpy", "class_name": "NotEqual", "config": {"name": "d1"}, "registered_name": "NotEqual", )" + from_x)), HasSubstr("M22 layer 'tiny/d1': the operation 'NotEqual' of Keras"));
}

TEST(BuildFromKeras, NamesLayerAndOptionOfABadConfig) {
  const auto dense = [](const std::string& keys) { return problems_in(with_layer(R"({"module": "keras.layers", "class_name": "Dense", "config": {"name": "d1", )" + keys + R"(}, "registered_name": null, )" + from_x)); };
  EXPECT_THAT(dense(R"("units": "three")"), testing::AllOf(HasSubstr("M22 "), HasSubstr("'tiny/d1' (Dense)"), HasSubstr("units: expected an integer, found \"three\"")));
  EXPECT_THAT(dense(R"("units": -3)"), testing::AllOf(HasSubstr("M22 "), HasSubstr("'tiny/d1' (Dense)"), HasSubstr("units")));
  EXPECT_THAT(dense(R"("units": 3, "frob": 1)"), testing::AllOf(HasSubstr("M22 "), HasSubstr("unknown key 'frob'"), HasSubstr("d1")));
  EXPECT_THAT(dense(R"("units": 3, "activation": "frobnicate")"), testing::AllOf(HasSubstr("'tiny/d1'"), HasSubstr("activation 'frobnicate'")));
  EXPECT_THAT(dense(R"("units": 3, "dtype": "float13")"), testing::AllOf(HasSubstr("'tiny/d1'"), HasSubstr("dtype"), HasSubstr("float13")));
  EXPECT_EQ(dense(R"("units": 3, "quantization_config": null, "some_new_option": false)"), "no error");
}

TEST(BuildFromKeras, NamesWhatAGraphContradicts) {
  const auto graph = [](const std::string& d1_node, const std::string& d2_node, const std::string& output) {
    return problems_in(parse(R"({"class_name": "Functional", "config": {"name": "tiny", "layers": [
      {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 4], "name": "x"}, "name": "x", "inbound_nodes": []},
      {"class_name": "Dense", "config": {"name": "d1", "units": 4}, "name": "d1", "inbound_nodes": [[)" + d1_node + R"(]]},
      {"class_name": "Dense", "config": {"name": "d2", "units": 4}, "name": "d2", "inbound_nodes": [[)" + d2_node + R"(]]}],
      "input_layers": [["x", 0, 0]], "output_layers": [[)" + output + R"(, 0, 0]]}})"));
  };
  EXPECT_EQ(graph(R"(["x", 0, 0, {}])", R"(["d1", 0, 0, {}])", R"("d2")"), "no error");
  EXPECT_THAT(graph(R"(["x", 0, 0, {}])", R"(["ghost", 0, 0, {}])", R"("d2")"), HasSubstr("M23 'd2' of 'tiny' reads 'ghost', which no layer is called"));
  EXPECT_THAT(graph(R"(["x", 0, 0, {}])", R"(["d1", 7, 0, {}])", R"("d2")"), HasSubstr("M23 'd2' of 'tiny' reads node 7, tensor 0 of 'd1', which is called 1 times"));
  EXPECT_THAT(graph(R"(["d2", 0, 0, {}])", R"(["d1", 0, 0, {}])", R"("d2")"), HasSubstr("M23 cycle: d1 -> d2 -> d1"));
  EXPECT_THAT(graph(R"(["x", 0, 0, {}])", R"(["d1", 0, 0, {}])", R"("ghost")"), HasSubstr("reads 'ghost'"));
  EXPECT_THAT(graph(R"(["x", 0, 0, {"mask": ["x", 0, 0]}])", R"(["d1", 0, 0, {}])", R"("d2")"), HasSubstr("M22 layer 'tiny/d1' is called with the argument 'mask'"));
}

TEST(BuildFromKeras, RefusesASubclassedModelUntilTheJobDescribesIt) {
  const Value demo = parse(R"({"module": null, "class_name": "Demo", "config": {"name": "demo"}, "registered_name": "lockstep>Demo", "build_config": {"input_shape": [6, 10]}})");
  const std::string problems = problems_in(demo);
  EXPECT_THAT(problems, HasSubstr("M20 class 'Demo' (lockstep>Demo) is a subclassed model: the file keeps no forward graph of it. Declare it under model:"));
  EXPECT_THAT(problems, HasSubstr(R"(custom_objects: {"lockstep>Demo": model})"));

  const LayerRegistry registry = test_registry();
  KerasReading reading{registry, CustomObjects(parse(R"({"Demo": "model"})")), {}, {}, {}};
  reading.own_model = [&] { return build_model(parse(R"({"inputs": [{"name": "args_0", "shape": [10], "dtype": "int64"}], "layers": [{"name": "dense", "type": "Dense", "units": 1}]})"), registry); };
  const KerasModel read_model = build_from_keras(demo, reading);
  EXPECT_EQ(read_model.model->name, "demo");
  EXPECT_EQ(read_model.model->registered_name, "lockstep>Demo");
  EXPECT_THAT(weights_of(*read_model.model), ElementsAre("dense/kernel (10, 1)", "dense/bias (1,)"));
}

TEST(BuildFromKeras, LooksThroughTheWrapperOfMultiGpuModel) {
  const KerasModel read_model = read(stored_config("multi_gpu_keras2"));
  EXPECT_EQ(read_model.model->name, "sequential_1");
  EXPECT_THAT(layer_names(*read_model.model), ElementsAre("hidden", "bn", "image_embedding"));
  ASSERT_EQ(read_model.notes.size(), 1u);
  EXPECT_THAT(read_model.notes[0], HasSubstr("looked through"));
}

TEST(BuildFromKeras, MapsFunctionsOfTheFile) {
  const Value config = with_layer(R"({"module": "keras.layers", "class_name": "Activation", "config": {"name": "d1", "activation": {"module": "builtins", "class_name": "function", "config": "lockstep>gelu_tanh", "registered_name": "function"}}, "registered_name": null, )" + from_x);
  EXPECT_THAT(problems_in(config), testing::AllOf(HasSubstr("'tiny/d1'"), HasSubstr("gelu_tanh")));
  EXPECT_EQ(problems_in(config, R"({"lockstep>gelu_tanh": {"type": "gelu", "approximate": true}})"), "no error");
}

TEST(ToKerasConfig, IsReadBackToTheSameModel) {
  for (const std::string name : {"retrieval_keras3", "multi_io_dict_keras3", "nested_keras3", "dict_inputs_keras3", "nested_keras2"}) {
    const KerasModel first = read(stored_config(name));
    const Value written = to_keras_config(*first.model, {});
    const KerasModel second = read(written);
    EXPECT_EQ(weights_of(*second.model), weights_of(*first.model)) << name;
    EXPECT_EQ(output_names(*second.model), output_names(*first.model)) << name;
    EXPECT_EQ(layer_names(*second.model), layer_names(*first.model)) << name;
    EXPECT_EQ(to_keras_config(*second.model, {}), written) << name;
  }
}

TEST(ToKerasConfig, WritesWiringAsKerasDid) {
  for (const std::string name : {"multi_io_dict_keras3", "dict_inputs_keras3", "nested_keras3"}) {
    const Value stored = stored_config(name);
    const Value written = to_keras_config(*read(stored).model, {});
    EXPECT_EQ(written.at("config").at("input_layers"), stored.at("config").at("input_layers")) << name;
    EXPECT_EQ(written.at("config").at("output_layers"), stored.at("config").at("output_layers")) << name;
    for (const Value& layer : stored.at("config").at("layers").as_list()) {
      for (const Value& own : written.at("config").at("layers").as_list()) {
        if (own.at("name") != layer.at("name") || own.at("class_name") == Value("Functional") || own.at("class_name") == Value("Sequential")) continue;
        ASSERT_EQ(own.at("inbound_nodes").size(), layer.at("inbound_nodes").size()) << name;
        for (size_t i = 0; i < own.at("inbound_nodes").size(); ++i) {
          EXPECT_EQ(own.at("inbound_nodes").as_list()[i].at("args"), layer.at("inbound_nodes").as_list()[i].at("args")) << name << " " << own.at("name").as_string();
        }
      }
    }
  }
}

TEST(ToKerasConfig, WritesCustomTypesUnderTheNamesOfTheirFile) {
  const KerasModel read_model = read(stored_config("embedding_dot_keras3"), R"({"lockstep>EmbeddingDotProduct": "EmbeddingDotProduct"})", dot_product);
  const Value written = to_keras_config(*read_model.model, {});
  const Value& layer = written.at("config").at("layers").as_list().back();
  EXPECT_EQ(layer.at("class_name"), Value("EmbeddingDotProduct"));
  EXPECT_EQ(layer.at("registered_name"), Value("lockstep>EmbeddingDotProduct"));
  EXPECT_TRUE(layer.at("module").is_null());
  EXPECT_EQ(layer.at("config").at("embedding_layer_name"), Value("image_embedding"));
}

TEST(ToKerasConfig, KeepsNamesOfOutputsThatKerasWouldNotGive) {
  auto model = model_from(R"({"inputs": [{"name": "x", "shape": [4]}, {"name": "y", "shape": [4]}],
    "layers": [{"name": "tower", "type": "Dense", "units": 3, "inputs": "x"}, {"name": "again", "use": "tower", "inputs": "y"}], "outputs": ["tower", "again"]})");
  const KerasModel again = read(to_keras_config(*model, {}));
  EXPECT_THAT(output_names(*again.model), ElementsAre("tower", "again"));
}

}  // namespace
}  // namespace lockstep
