#include "io/hdf5/writer.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/hdf5/handle.h"

namespace lockstep {
namespace {

Tensor counting(DType dtype, Shape shape) {
  Tensor values({DType::f32, std::move(shape)});
  float next = 0;
  for (float& value : values.as<float>()) value = next++;
  return cast(values, dtype);
}

std::vector<std::byte> values_in(const hdf5::Handle& file, const std::string& path) {
  const hdf5::Handle dataset = hdf5::open_dataset(file, path);
  const auto dtype = hdf5::dtype_of(hdf5::type_of(dataset));
  std::vector<std::byte> values(TensorType{dtype.value(), hdf5::shape_of(dataset)}.bytes());
  hdf5::read_values(dataset, values);
  return values;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) { return {tensor.bytes().begin(), tensor.bytes().end()}; }

class FileHdf5Writer : public testing::Test {
 protected:
  FileHdf5Writer() { std::filesystem::create_directories(folder_); }
  ~FileHdf5Writer() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("lockstep_hdf5_" + std::to_string(getpid()));
  const std::string path_ = folder_ / "out.h5";
};

TEST(Hdf5Writer, StoresEveryTypeOfElement) {
  constexpr DType all[] = {DType::boolean, DType::u8, DType::u16, DType::u32, DType::u64, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};
  Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
  for (const DType dtype : all) writer.dataset("/types/" + std::string(name_of(dtype)), counting(dtype, {2, 3}));
  const hdf5::Handle file = hdf5::open_image("a.h5", writer.finish());
  for (const DType dtype : all) {
    const std::string path = "/types/" + std::string(name_of(dtype));
    const hdf5::Handle dataset = hdf5::open_dataset(file, path);
    EXPECT_EQ(hdf5::dtype_of(hdf5::type_of(dataset)), dtype) << path;
    EXPECT_EQ(hdf5::shape_of(dataset), (Shape{2, 3})) << path;
    EXPECT_EQ(values_in(file, path), bytes_of(counting(dtype, {2, 3}))) << path;
  }
  EXPECT_EQ(hdf5::read_text(hdf5::open_dataset(file, "/types/bfloat16"), "dtype"), "bfloat16");
}

TEST(Hdf5Writer, StoresScalarsAndTensorsWithoutElements) {
  Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
  writer.dataset("/scalar", counting(DType::i64, {}));
  writer.dataset("/none", counting(DType::f32, {0, 4}));
  const hdf5::Handle file = hdf5::open_image("a.h5", writer.finish());
  EXPECT_EQ(hdf5::shape_of(hdf5::open_dataset(file, "/scalar")), Shape{});
  EXPECT_EQ(hdf5::shape_of(hdf5::open_dataset(file, "/none")), (Shape{0, 4}));
}

TEST(Hdf5Writer, GivesAttributesToGroupsAndTheRoot) {
  Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
  writer.group("/layers/dense/vars");
  writer.group("/layers/dense/vars");  // twice is fine
  writer.attribute("/layers/dense/vars", "name", "h\u00efdden");
  const std::vector<std::string> names = {"a", "bcd"};
  writer.attribute("/", "layer_names", names);
  writer.attribute("/", "order", 41);
  const hdf5::Handle file = hdf5::open_image("a.h5", writer.finish());
  EXPECT_EQ(hdf5::read_text(hdf5::open_group(file, "/layers/dense/vars"), "name"), "h\u00efdden");
  EXPECT_EQ(hdf5::read_texts(file, "layer_names"), names);
  EXPECT_EQ(hdf5::attribute_names(file), (std::vector<std::string>{"layer_names", "order"}));
}

TEST(Hdf5Writer, SaysWhereTheValuesLie) {
  Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
  const Tensor values = counting(DType::f64, {5});
  writer.dataset("/a", counting(DType::f32, {100}));
  writer.dataset("/b", values);
  const uint64_t offset = writer.offset_of("/b");
  const std::vector<std::byte> bytes = writer.finish();
  ASSERT_LE(offset + 40, bytes.size());
  EXPECT_EQ(std::memcmp(bytes.data() + offset, values.bytes().data(), 40), 0);
}

// Memory that an allocator hands out must not show: each time it is filled with another byte first.
TEST(Hdf5Writer, WritesTheSameBytesEachTime) {
  const auto written = [](int filling) {
    mallopt(M_PERTURB, filling);
    Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
    for (int i = 0; i < 40; ++i) {
      const std::string group = "/layers/dense_" + std::to_string(i) + "/vars";
      writer.group(group);
      writer.attribute(group, "name", "layer " + std::to_string(i));
      writer.dataset(group + "/0", counting(i % 2 == 0 ? DType::f32 : DType::bf16, {3, 2}));
    }
    std::vector<std::byte> bytes = writer.finish();
    mallopt(M_PERTURB, 0);
    return bytes;
  };
  const std::vector<std::byte> first = written(0x5a);
  EXPECT_TRUE(std::ranges::equal(first, written(0xa5)));
}

TEST_F(FileHdf5Writer, WritesRowsInAnyOrder) {
  const Tensor rows = counting(DType::f32, {5, 2});
  {
    Hdf5Writer writer = Hdf5Writer::to_file(path_);
    writer.dataset("/outputs/logits", rows.type());
    writer.write_rows("/outputs/logits", 3, 2, rows.bytes().subspan(3 * 8));
    writer.write_rows("/outputs/logits", 0, 3, rows.bytes().first(3 * 8));
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_TRUE(writer.finish().empty());
  }
  EXPECT_EQ(values_in(hdf5::open_file(path_), "/outputs/logits"), bytes_of(rows));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileHdf5Writer, LeavesNothingAndReplacesNothingWhenItIsNotFinished) {
  {
    Hdf5Writer writer = Hdf5Writer::to_file(path_);
    writer.dataset("/a", counting(DType::f32, {2}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(FileHdf5Writer, NamesTheFileAndTheReasonWhenItCannotBeMade) {
  try {
    Hdf5Writer::to_file(folder_ / "absent" / "out.h5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].code, "W40");
    EXPECT_NE(std::string(error.what()).find("absent/out.h5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos) << error.what();
  }
}

TEST(Hdf5Writer, RefusesRowsThatAreNotThere) {
  Hdf5Writer writer = Hdf5Writer::in_memory("a.h5");
  const Tensor rows = counting(DType::f32, {2, 2});
  writer.dataset("/a", rows.type());
  EXPECT_THROW(writer.write_rows("/a", 1, 2, rows.bytes()), Error);
}

}  // namespace
}  // namespace lockstep
