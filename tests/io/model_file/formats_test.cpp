#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/error/error.h"
#include "io/model_file/stored_model.h"

namespace lockstep {
namespace {

// Files of scripts/make_test_models.py: element i of weight w is w + i / 64, of the optimizer's variable v (in Keras's flat order, the iteration and Keras 3's
// learning rate counted) 100 + v + i / 64.
const std::string models = std::string(TEST_DATA) + "/models/";

std::vector<float> values_of(const StoredModel& model, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.type.elements()));
  EXPECT_EQ(tensor.type.dtype, DType::f32) << tensor.source;
  model.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> pattern(float start, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = start + static_cast<float>(i) / 64;
  return values;
}

struct Listed {
  std::string layer;
  std::string variable;
  std::string object_path;
  int index;
  Shape shape;
  std::optional<bool> trainable;
  float start;  ///< of its values

  auto tied() const { return std::tie(layer, variable, object_path, index, shape, trainable); }
  bool operator==(const Listed& other) const { return tied() == other.tied(); }
};

std::ostream& operator<<(std::ostream& out, const Listed& listed) {
  return out << "{" << listed.layer << ", " << listed.variable << ", " << listed.object_path << ", " << listed.index << ", " << text_of(listed.shape) << ", "
             << (listed.trainable ? (*listed.trainable ? "trainable" : "frozen") : "-") << "}";
}

void expect_tensors(const StoredModel& model, const std::vector<Listed>& expected) {
  std::vector<Listed> found;
  std::set<std::string> sources;
  for (const StoredTensor& tensor : model.tensors) {
    found.push_back({tensor.layer, tensor.variable, tensor.object_path, tensor.index, tensor.type.shape, tensor.trainable, 0});
    EXPECT_TRUE(sources.insert(tensor.source).second) << tensor.source;
  }
  ASSERT_EQ(found, expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto values = values_of(model, model.tensors[i]);
    EXPECT_EQ(values, pattern(expected[i].start, values.size())) << model.tensors[i].source;
  }
}

struct ListedSlot {
  std::string name;
  std::string layer;
  std::string variable;
};

// Adam's slots of the retrieval model; the first variable behind the counters has the number `first`.
void expect_adam(const StoredModel& model, const std::vector<ListedSlot>& expected, int first) {
  ASSERT_TRUE(model.optimizer);
  EXPECT_EQ(model.optimizer->class_name, "Adam");
  EXPECT_EQ(model.optimizer->iterations, 7);
  ASSERT_EQ(model.optimizer->slots.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, tensor] = model.optimizer->slots[i];
    EXPECT_EQ(name, expected[i].name) << tensor.source;
    EXPECT_EQ(tensor.layer, expected[i].layer) << tensor.source;
    EXPECT_EQ(tensor.variable, expected[i].variable) << tensor.source;
    const auto values = values_of(model, tensor);
    EXPECT_EQ(values, pattern(static_cast<float>(100 + first + static_cast<int>(i)), values.size())) << tensor.source;
  }
}

std::vector<ListedSlot> interleaved(const std::string& prefix = "") {
  std::vector<ListedSlot> slots;
  for (const char* layer : {"hidden", "image_embedding"}) {
    for (const char* variable : {"kernel", "bias"}) {
      for (const char* name : {"momentums", "velocities"}) slots.push_back({name, prefix + layer, variable});
    }
  }
  return slots;
}

std::vector<ListedSlot> grouped() {
  std::vector<ListedSlot> slots;
  for (const char* name : {"momentums", "velocities"}) {
    for (const char* layer : {"hidden", "image_embedding"}) {
      for (const char* variable : {"kernel", "bias"}) slots.push_back({name, layer, variable});
    }
  }
  return slots;
}

void expect_kind(const StoredModel& model, const std::string& format, const std::string& framework, int semantics, NamingRule rule) {
  EXPECT_EQ(model.format, format);
  EXPECT_EQ(model.framework, framework);
  EXPECT_EQ(model.semantics, semantics);
  EXPECT_EQ(model.rule, rule);
}

const std::optional<bool> unsaid;

std::vector<Listed> retrieval_by_layer() {
  return {{"hidden", "kernel", "", 0, {3, 4}, unsaid, 0},
          {"hidden", "bias", "", 1, {4}, unsaid, 1},
          {"image_embedding", "kernel", "", 0, {4, 2}, unsaid, 2},
          {"image_embedding", "bias", "", 1, {2}, unsaid, 3}};
}

TEST(KerasH5, OfKeras2HasWeightsConfigAndSlots) {
  const StoredModel model = open_model_file(models + "retrieval_k2.h5");
  expect_kind(model, "keras-h5", "tf_keras", 2, NamingRule::layer_order);
  EXPECT_EQ(model.version, "2.21.0");
  expect_tensors(model, retrieval_by_layer());
  EXPECT_EQ(model.tensors[0].source, "/model_weights/hidden/hidden/kernel:0");
  ASSERT_TRUE(model.architecture);
  EXPECT_EQ(model.architecture->at("class_name").as_string(), "Sequential");
  EXPECT_EQ(model.architecture->at("config").at("layers").size(), 3u);
  ASSERT_TRUE(model.compile_config);
  EXPECT_EQ(model.compile_config->at("optimizer").at("class_name").as_string(), "Adam");
  EXPECT_EQ(model.compile_config->at("optimizer").at("config").at("learning_rate").as_number(), 0.125);
  expect_adam(model, interleaved(), 1);
  EXPECT_FALSE(model.optimizer->legacy);
  EXPECT_TRUE(model.custom_objects.empty());
}

TEST(KerasH5, OfKeras3NamesSlotsByTheirWeights) {
  const StoredModel model = open_model_file(models + "retrieval_k3.h5");
  expect_kind(model, "keras-h5", "keras", 3, NamingRule::layer_order);
  EXPECT_EQ(model.version, "3.15.1");
  expect_tensors(model, retrieval_by_layer());
  expect_adam(model, interleaved(), 2);
  EXPECT_EQ(model.optimizer->learning_rate, 0.125);
}

TEST(KerasH5, OfALegacyOptimizerGroupsBySlot) {
  const StoredModel model = open_model_file(models + "retrieval_k2_legacy.h5");
  expect_adam(model, grouped(), 1);
  EXPECT_TRUE(model.optimizer->legacy);
}

TEST(KerasH5, OfWeightsAloneHasNoConfig) {
  const StoredModel model = open_model_file(models + "retrieval_k2_weights.h5");
  expect_kind(model, "legacy-weights-h5", "tf_keras", 2, NamingRule::layer_order);
  expect_tensors(model, retrieval_by_layer());
  EXPECT_FALSE(model.architecture);
  EXPECT_FALSE(model.optimizer);
}

TEST(KerasH5, HoldsANestedModelAsOneLayerTrainableFirst) {
  for (const char* file : {"nested_k2.h5", "nested_k3.h5"}) {
    const StoredModel model = open_model_file(models + file);
    expect_tensors(model, {{"mid", "dense/kernel", "", 0, {3, 2}, unsaid, 0},
                           {"mid", "dense/bias", "", 1, {2}, unsaid, 1},
                           {"mid", "bn/gamma", "", 2, {2}, unsaid, 2},
                           {"mid", "bn/beta", "", 3, {2}, unsaid, 3},
                           {"mid", "bn/moving_mean", "", 4, {2}, unsaid, 4},
                           {"mid", "bn/moving_variance", "", 5, {2}, unsaid, 5},
                           {"out", "kernel", "", 0, {2, 1}, unsaid, 6},
                           {"out", "bias", "", 1, {1}, unsaid, 7}});
  }
}

TEST(KerasArchive, OfKeras3KnowsItsLayersNames) {
  const StoredModel model = open_model_file(models + "nested_k3.keras");
  expect_kind(model, "keras-zip", "keras", 3, NamingRule::object_path);
  EXPECT_EQ(model.version, "3.15.1");
  // In the order of the groups' names.
  expect_tensors(model, {{"out", "", "layers/dense", 0, {2, 1}, unsaid, 6},
                         {"out", "", "layers/dense", 1, {1}, unsaid, 7},
                         {"mid/bn", "", "layers/functional/layers/batch_normalization", 0, {2}, unsaid, 2},
                         {"mid/bn", "", "layers/functional/layers/batch_normalization", 1, {2}, unsaid, 3},
                         {"mid/bn", "", "layers/functional/layers/batch_normalization", 2, {2}, unsaid, 4},
                         {"mid/bn", "", "layers/functional/layers/batch_normalization", 3, {2}, unsaid, 5},
                         {"mid/dense", "", "layers/functional/layers/dense", 0, {3, 2}, unsaid, 0},
                         {"mid/dense", "", "layers/functional/layers/dense", 1, {2}, unsaid, 1}});
  ASSERT_TRUE(model.architecture);
  EXPECT_EQ(model.architecture->at("class_name").as_string(), "Functional");
}

TEST(KerasArchive, OfKeras2KnowsAttributesOnly) {
  const StoredModel model = open_model_file(models + "retrieval_k2.keras");
  expect_kind(model, "keras-zip", "tf_keras", 2, NamingRule::object_path);
  expect_tensors(model, {{"", "", "layers/dense", 0, {3, 4}, unsaid, 0},
                         {"", "", "layers/dense", 1, {4}, unsaid, 1},
                         {"", "", "layers/dense_1", 0, {4, 2}, unsaid, 2},
                         {"", "", "layers/dense_1", 1, {2}, unsaid, 3}});
  expect_adam(model, std::vector<ListedSlot>(8), 1);
}

TEST(KerasArchive, AndWeightsH5HoldTheSameTensors) {
  const std::vector<Listed> expected = {{"hidden", "", "layers/dense", 0, {3, 4}, unsaid, 0},
                                        {"hidden", "", "layers/dense", 1, {4}, unsaid, 1},
                                        {"image_embedding", "", "layers/dense_1", 0, {4, 2}, unsaid, 2},
                                        {"image_embedding", "", "layers/dense_1", 1, {2}, unsaid, 3}};
  const StoredModel archive = open_model_file(models + "retrieval_k3.keras");
  expect_tensors(archive, expected);
  expect_adam(archive, std::vector<ListedSlot>(8), 2);
  EXPECT_EQ(archive.optimizer->learning_rate, 0.125);
  ASSERT_TRUE(archive.compile_config);
  EXPECT_EQ(archive.compile_config->at("loss").at("class_name").as_string(), "MeanSquaredError");
  const StoredModel weights = open_model_file(models + "retrieval_k3.weights.h5");
  expect_kind(weights, "weights-h5", "keras", 3, NamingRule::object_path);
  expect_tensors(weights, expected);
  expect_adam(weights, std::vector<ListedSlot>(8), 2);
}

TEST(KerasArchive, NamesClassesThatAreNotKerass) {
  for (const char* file : {"embedding_dot_k2.h5", "embedding_dot_k3.keras"}) {
    const StoredModel model = open_model_file(models + file);
    EXPECT_EQ(model.tensors.size(), 4u);
    ASSERT_EQ(model.custom_objects.size(), 1u);
    EXPECT_EQ(model.custom_objects[0].at("class_name").as_string(), "lockstep>EmbeddingDotProduct");
    EXPECT_EQ(model.custom_objects[0].at("config").at("embedding_layer_name").as_string(), "image_embedding");
    EXPECT_EQ(model.custom_objects[0].at("path").as_string(), "dot_product");
  }
}

TEST(SavedModel, OfASequentialModelHasConfigAndSlots) {
  const StoredModel model = open_model_file(models + "retrieval_k2_saved_model");
  expect_kind(model, "saved-model", "tf_keras", 2, NamingRule::names);
  EXPECT_EQ(model.version, "2.21.0");
  expect_tensors(model, {{"hidden", "kernel", "layer_with_weights-0", 0, {3, 4}, true, 0},
                         {"hidden", "bias", "layer_with_weights-0", 1, {4}, true, 1},
                         {"image_embedding", "kernel", "layer_with_weights-1", 0, {4, 2}, true, 2},
                         {"image_embedding", "bias", "layer_with_weights-1", 1, {2}, true, 3}});
  expect_adam(model, interleaved(), 1);
  ASSERT_TRUE(model.architecture);
  EXPECT_EQ(model.architecture->at("class_name").as_string(), "Sequential");
  // {"class_name": "__tuple__", "items": [null, 3]} in the file.
  EXPECT_EQ(model.architecture->at("config").at("layers").as_list()[0].at("config").at("batch_input_shape").as_list().size(), 2u);
}

TEST(SavedModel, NamesLayersOfNestedModels) {
  const StoredModel model = open_model_file(models + "nested_k2_saved_model");
  const std::string mid = "layer_with_weights-0/";
  expect_tensors(model, {{"mid/dense", "kernel", mid + "layer_with_weights-0", 0, {3, 2}, true, 0},
                         {"mid/dense", "bias", mid + "layer_with_weights-0", 1, {2}, true, 1},
                         {"mid/bn", "gamma", mid + "layer_with_weights-1", 0, {2}, true, 2},
                         {"mid/bn", "beta", mid + "layer_with_weights-1", 1, {2}, true, 3},
                         {"mid/bn", "moving_mean", mid + "layer_with_weights-1", 2, {2}, false, 4},
                         {"mid/bn", "moving_variance", mid + "layer_with_weights-1", 3, {2}, false, 5},
                         {"out", "kernel", "layer_with_weights-1", 0, {2, 1}, true, 6},
                         {"out", "bias", "layer_with_weights-1", 1, {1}, true, 7}});
}

// Saved inside MirroredStrategy over 4 devices, by classes without get_config.
TEST(SavedModel, OfASubclassedModelNamesItsClasses) {
  const StoredModel model = open_model_file(models + "demo_saved_model");
  expect_tensors(model, {{"dense", "kernel", "dense_layer", 0, {10, 1}, true, 0}, {"dense", "bias", "dense_layer", 1, {1}, true, 1}});
  EXPECT_FALSE(model.architecture);
  ASSERT_EQ(model.custom_objects.size(), 2u);
  EXPECT_EQ(model.custom_objects[0].at("class_name").as_string(), "Demo");
  EXPECT_EQ(model.custom_objects[0].at("path").as_string(), "");
  EXPECT_EQ(model.custom_objects[0].at("config").size(), 0u);
  EXPECT_EQ(model.custom_objects[1].at("class_name").as_string(), "TestLayer");
  EXPECT_EQ(model.custom_objects[1].at("path").as_string(), "test_layer");
}

TEST(SavedModel, ExportedByKeras3HasFullNamesInOrder) {
  const StoredModel model = open_model_file(models + "retrieval_k3_export");
  expect_kind(model, "saved-model", "keras", 3, NamingRule::names);
  expect_tensors(model, {{"retrieval/hidden", "kernel", "variables", 0, {3, 4}, true, 0},
                         {"retrieval/hidden", "bias", "variables", 1, {4}, true, 1},
                         {"retrieval/image_embedding", "kernel", "variables", 2, {4, 2}, true, 2},
                         {"retrieval/image_embedding", "bias", "variables", 3, {2}, true, 3}});
  EXPECT_FALSE(model.architecture);
}

TEST(TensorFlowCheckpoint, OfKerasWeightsNamesWeightsAndSlots) {
  // A prefix, a file of it, or the folder that holds it.
  for (const char* path : {"retrieval_k2_tf/weights", "retrieval_k2_tf/weights.index", "retrieval_k2_tf"}) {
    const StoredModel model = open_model_file(models + path);
    expect_kind(model, "tf-checkpoint", "tf_keras", 2, NamingRule::names);
    expect_tensors(model, {{"hidden", "kernel", "layer_with_weights-0", 0, {3, 4}, unsaid, 0},
                           {"hidden", "bias", "layer_with_weights-0", 1, {4}, unsaid, 1},
                           {"image_embedding", "kernel", "layer_with_weights-1", 0, {4, 2}, unsaid, 2},
                           {"image_embedding", "bias", "layer_with_weights-1", 1, {2}, unsaid, 3}});
    expect_adam(model, interleaved(), 1);
  }
}

TEST(TensorFlowCheckpoint, LooksPastWhatStandsBesideTheModel) {
  const StoredModel model = open_model_file(models + "retrieval_k2_legacy_tf/ckpt");
  ASSERT_EQ(model.tensors.size(), 4u);
  EXPECT_EQ(model.tensors[0].source, "model/layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(model.tensors[0].object_path, "layer_with_weights-0");
  expect_adam(model, grouped(), 1);
  EXPECT_TRUE(model.optimizer->legacy);
  EXPECT_EQ(model.notes, std::vector<std::string>{"not the model's, left out: step/.ATTRIBUTES/VARIABLE_VALUE"});
}

TEST(TensorFlowCheckpoint, OfKeras3FindsWeightsUnderTheirLayers) {
  const StoredModel model = open_model_file(models + "retrieval_k3_tf/ckpt");
  expect_kind(model, "tf-checkpoint", "keras", 3, NamingRule::names);
  expect_tensors(model, {{"retrieval/hidden", "kernel", "_functional/_operations/1", 0, {3, 4}, unsaid, 0},
                         {"retrieval/hidden", "bias", "_functional/_operations/1", 1, {4}, unsaid, 1},
                         {"retrieval/image_embedding", "kernel", "_functional/_operations/2", 0, {4, 2}, unsaid, 2},
                         {"retrieval/image_embedding", "bias", "_functional/_operations/2", 1, {2}, unsaid, 3}});
  expect_adam(model, interleaved("retrieval/"), 2);
}

TEST(TensorFlowCheckpoint, OfNamesJoinsSlicesAndKnowsSlots) {
  const StoredModel model = open_model_file(models + "named_tf/model.ckpt-7");
  expect_kind(model, "tf-checkpoint", "tensorflow", 2, NamingRule::names);
  expect_tensors(model, {{"hidden", "bias", "", 0, {4}, unsaid, 1}, {"hidden", "kernel", "", 1, {3, 4}, unsaid, 0}});
  expect_adam(model, {{"momentums", "hidden", "bias"}, {"velocities", "hidden", "bias"}}, 0);
}

TEST(Architecture, IsReadFromEveryFormatThatHasOne) {
  for (const char* file : {"retrieval_k2.h5", "retrieval_k3.h5", "retrieval_k2.keras", "retrieval_k3.keras", "retrieval_k2_saved_model", "retrieval_k3.json"}) {
    const Value architecture = read_architecture(models + file);
    EXPECT_EQ(architecture.at("class_name").as_string(), "Sequential") << file;
    EXPECT_TRUE(architecture.at("config").at("layers").is_list()) << file;
  }
  for (const char* file : {"retrieval_k2_weights.h5", "retrieval_k3_export", "demo_saved_model", "named_tf"}) {
    EXPECT_THROW(read_architecture(models + file), Error) << file;
  }
}

TEST(StoredModel, ReadsIntoABufferOfTheRightSizeOnly) {
  for (const char* file : {"retrieval_k2.h5", "retrieval_k3.keras", "retrieval_k2_tf", "named_tf"}) {
    const StoredModel model = open_model_file(models + file);
    std::vector<std::byte> small(model.tensors[0].type.bytes() - 1);
    EXPECT_THROW(model.read(model.tensors[0], small), Error) << file;
  }
}

}  // namespace
}  // namespace lockstep
