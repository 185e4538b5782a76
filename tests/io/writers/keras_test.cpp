#include "io/keras/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "io/hdf5/handle.h"

namespace lockstep {
namespace {

Tensor filled(Shape shape, float value) {
  Tensor tensor({DType::f32, std::move(shape)});
  std::ranges::fill(tensor.as<float>(), value);
  return tensor;
}

// Sequential([Input(4), Dense(3, name="hidden"), Dropout(0.1), Dense(2, name="logits")], name="fashion") with Adam, as Keras 3.15.1 lays it out.
KerasArchive archive() {
  KerasArchive archive;
  archive.config.set("class_name", "Sequential");
  archive.config.set("config", Value(Value::Map{{"name", "fashion"}}));
  archive.objects = {
      {"", "fashion", {}},
      {"layers/dense", "hidden", {filled({4, 3}, 1), filled({3}, 2)}},
      {"layers/dropout", "dropout", {}},
      {"layers/dense_1", "logits", {filled({3, 2}, 3), filled({2}, 4)}},
      {"optimizer", "adam", {Tensor({DType::i32, {}}), filled({}, 0.001f), filled({4, 3}, 5), filled({4, 3}, 6)}},
  };
  return archive;
}

std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::vector<std::string> members(const hdf5::Handle& file, const std::string& path) {
  std::vector<std::string> names;
  for (const hdf5::Link& link : hdf5::links_of(hdf5::open_group(file, path), 100)) names.push_back(link.name);
  return names;
}

TEST(KerasWriter, LaysOutGroupsAndNamesAsKeras3Does) {
  const hdf5::Handle file = hdf5::open_image("w", write_keras_weights("w", archive().objects).bytes);
  EXPECT_EQ(members(file, "/"), (std::vector<std::string>{"layers", "optimizer", "vars"}));
  EXPECT_EQ(members(file, "/layers"), (std::vector<std::string>{"dense", "dense_1", "dropout"}));
  EXPECT_EQ(members(file, "/layers/dense/vars"), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(members(file, "/layers/dropout/vars"), std::vector<std::string>{});
  EXPECT_EQ(members(file, "/optimizer/vars"), (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(hdf5::read_text(hdf5::open_group(file, "/vars"), "name"), "fashion");
  EXPECT_EQ(hdf5::read_text(hdf5::open_group(file, "/layers/dense_1/vars"), "name"), "logits");
  EXPECT_EQ(hdf5::read_text(hdf5::open_group(file, "/layers/dropout/vars"), "name"), "dropout");
  EXPECT_EQ(hdf5::read_text(hdf5::open_group(file, "/optimizer/vars"), "name"), "adam");
  EXPECT_EQ(hdf5::dtype_of(hdf5::type_of(hdf5::open_dataset(file, "/optimizer/vars/0"))), DType::i32);
}

TEST(KerasWriter, LeavesTheNameOutWhereThereIsNoneAsKeras2Does) {
  const hdf5::Handle file = hdf5::open_image("w", write_keras_weights("w", {{"layers/dense", "", {filled({1}, 1)}}}).bytes);
  EXPECT_FALSE(hdf5::has_attribute(hdf5::open_group(file, "/layers/dense/vars"), "name"));
}

TEST(KerasWriter, PutsMetadataConfigAndWeightsIntoTheArchive) {
  const std::string bytes = text_of(write_keras(archive()).bytes);
  EXPECT_NE(bytes.find(R"(metadata.json{"keras_version": "3.15.1", "date_saved": "1980-01-01@00:00:00"})"), std::string::npos);
  EXPECT_NE(bytes.find(R"(config.json{"class_name": "Sequential", "config": {"name": "fashion"}})"), std::string::npos);
  EXPECT_NE(bytes.find("model.weights.h5\x89HDF\r\n"), std::string::npos);
}

TEST(KerasWriter, SaysWhereEachVariableLies) {
  const KerasArchive written = archive();
  const KerasFile file = write_keras(written);
  ASSERT_EQ(file.offsets.size(), written.objects.size());
  for (size_t i = 0; i < written.objects.size(); ++i) {
    const std::vector<Tensor>& variables = written.objects[i].variables;
    ASSERT_EQ(file.offsets[i].size(), variables.size());
    for (size_t j = 0; j < variables.size(); ++j) {
      EXPECT_EQ(std::memcmp(file.bytes.data() + file.offsets[i][j], variables[j].bytes().data(), variables[j].bytes().size()), 0) << written.objects[i].path << " " << j;
    }
  }
}

TEST(KerasWriter, WritesTheSameBytesForTheSameState) {
  EXPECT_TRUE(std::ranges::equal(write_keras(archive()).bytes, write_keras(archive()).bytes));
  KerasArchive other = archive();
  other.objects[1].variables[0] = filled({4, 3}, 1.5f);
  EXPECT_FALSE(std::ranges::equal(write_keras(archive()).bytes, write_keras(other).bytes));
}

}  // namespace
}  // namespace lockstep
