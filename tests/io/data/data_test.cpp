#include "io/data/data.h"

#include <atomic>
#include <thread>

#include "io/npy/npy.h"
#include "io/npy/npz.h"
#include "tests/io/data/files.h"

namespace lockstep {

namespace {

const std::string columns = std::string(SOURCE_ROOT) + "/tests/io/data/columns.h5";

template <class T>
Tensor vector(DType dtype, std::vector<T> values) {
  return Tensor::of<T>(dtype, {static_cast<int64_t>(values.size())}, values);
}

const DataExpectation image_model = model_of({{"image", {2, 2}, DType::u8}}, {{"logits", {3}}});

}  // namespace

using Data = DataFiles;

TEST_F(Data, ReadsPackedImagesAndLabelsFromIdx) {
  written("x.gz", gzipped(idx({3, 2, 2}, counting(12))));
  written("y", idx({3}, counting(3)));
  const Value description = map({{"path", path("")}, {"inputs", map({{"image", "x.gz"}})}, {"targets", map({{"logits", "y"}})}});
  const OpenedData data = open_data(description, "data.train", image_model, 0);
  ASSERT_EQ(data.rows->rows(), 3);
  ASSERT_EQ(data.rows->columns().size(), 2u);
  EXPECT_EQ(data.rows->columns()[0].name, "image");
  EXPECT_EQ(data.rows->columns()[0].row, (TensorType{DType::u8, {2, 2}}));
  EXPECT_EQ(data.rows->columns()[1].role, RowSource::Role::target);
  EXPECT_EQ(data.rows->columns()[1].row, (TensorType{DType::u8, {}}));
  EXPECT_EQ(rows_of<uint8_t>(*data.rows, 0, {2, 0, 0}), (std::vector<uint8_t>{8, 9, 10, 11, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(all_of<uint8_t>(*data.rows, 1), (std::vector<uint8_t>{0, 1, 2}));
  EXPECT_TRUE(data.notes.empty());
}

// Python's gzip.compress(header + 31 * b"\x07" + b"\x09", 9, mtime=0).
TEST_F(Data, ReadsWhatGzipCompressed) {
  const std::string packed("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x63\x60\xe0\x60\x66\x60\x60\x60\x02\x62\x16\x10\x66\xc7\x0f\x38\x01\x0b\x73\x40\x66\x30\x00\x00\x00", 35);
  const OpenedData data = open_data(map({{"inputs", written("x.gz", packed)}}), "data.train", model_of({{"x", {4, 4}, DType::u8}}), 0);
  std::vector<uint8_t> expected(32, 7);
  expected.back() = 9;
  EXPECT_EQ(all_of<uint8_t>(*data.rows, 0), expected);
}

// Above 1 MiB the values are unpacked beside the caller.
TEST_F(Data, UnpacksLargeIdxFilesWhileOthersWork) {
  constexpr uint32_t rows = 1 << 19;
  std::string values;
  for (uint32_t i = 0; i < rows; ++i) values += big_endian(i);
  const std::string packed = gzipped(idx({rows}, values, 0x0C));
  const Value description = map({{"inputs", written("x.gz", packed)}});
  const DataExpectation model = model_of({{"x", {}, DType::i32}});
  const OpenedData data = open_data(description, "data.train", model, 0);
  EXPECT_EQ(rows_of<int32_t>(*data.rows, 0, {0, 70000, rows - 1}), (std::vector<int32_t>{0, 70000, rows - 1}));

  std::string damaged = packed;
  damaged[damaged.size() - 8] ^= 1;  // the checksum
  const OpenedData bad = open_data(map({{"inputs", written("bad.gz", damaged)}}), "data.train", model, 0);
  const std::string message = thrown_by([&] { rows_of<int32_t>(*bad.rows, 0, {0}); });
  EXPECT_EQ(message.substr(0, 3), "D11") << message;
  EXPECT_NE(message.find("incorrect data check"), std::string::npos) << message;
}

TEST_F(Data, ReadsEveryWayInWhichHdf5StoresNumbers) {
  std::vector<float> expected(12);
  std::iota(expected.begin(), expected.end(), 0.0f);
  for (const char* name : {"/good/float32", "good/float64", "/good/float16", "/good/packed", "/good/chunked", "/good/soft", "/good/a%2Fb%25"}) {
    const OpenedData data = open_data(map({{"path", columns}, {"inputs", name}}), "data.train", model_of({{"x", {3}, DType::f32}}), 0);
    std::vector<float> values = all_of<float>(*data.rows, 0);
    if (std::string(name).ends_with("64")) {
      for (float& value : values) value *= 2;
    }
    EXPECT_EQ(values, expected) << name;
    EXPECT_EQ(rows_of<float>(*data.rows, 0, {3, 1}).front(), std::string(name).ends_with("64") ? 4.5f : 9.0f) << name;
  }
  const OpenedData big_endian = open_data(map({{"path", columns}, {"inputs", "/good/big_endian"}}), "data.train", model_of({{"x", {3}, DType::i16}}), 0);
  EXPECT_EQ(rows_of<int16_t>(*big_endian.rows, 0, {1, 2}), (std::vector<int16_t>{3, 4, 5, 6, 7, 8}));
  const OpenedData compact = open_data(map({{"path", columns}, {"inputs", "/good/compact"}}), "data.train", model_of({{"x", {}, DType::u8}}), 0);
  EXPECT_EQ(all_of<uint8_t>(*compact.rows, 0), (std::vector<uint8_t>{0, 1, 2, 3}));
  const OpenedData flags = open_data(map({{"path", columns}, {"inputs", "/good/bool"}}), "data.train", model_of({{"x", {3}, DType::boolean}}), 0);
  EXPECT_EQ(rows_of<uint8_t>(*flags.rows, 0, {1}), (std::vector<uint8_t>{0, 1, 0}));
}

TEST_F(Data, PutsColumnsInTheModelsOrder) {
  const float weight[] = {0.5f, 2.0f};
  write_npz(path("all.npz"), {{"w", Tensor::of<float>(DType::f32, {2}, weight)}, {"y", vector<int64_t>(DType::i64, {7, 8})}, {"b", vector<float>(DType::f32, {3, 4})}, {"a", vector<float>(DType::f32, {1, 2})}});
  const DataExpectation model = model_of({{"a", {}, DType::f32}, {"b", {}, DType::f32}}, {{"labels", {}}, {"embedding", {}}});
  const Value description = map({{"format", "npz"}, {"path", path("all.npz")}, {"inputs", map({{"b", "b"}, {"a", "a"}})}, {"targets", list({"y", Value()})}, {"sample_weight", "w"}});
  const OpenedData data = open_data(description, "data.train", model, 0);
  std::vector<std::string> names;
  for (const RowSource::Column& column : data.rows->columns()) names.push_back(column.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "labels", ""}));
  EXPECT_EQ(data.rows->columns()[2].row, (TensorType{DType::i64, {}}));
  EXPECT_EQ(data.rows->columns()[3].role, RowSource::Role::sample_weight);
  EXPECT_EQ(all_of<float>(*data.rows, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(all_of<float>(*data.rows, 1), (std::vector<float>{3, 4}));
  EXPECT_EQ(all_of<int64_t>(*data.rows, 2), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(all_of<float>(*data.rows, 3), (std::vector<float>{0.5f, 2.0f}));
}

TEST_F(Data, ConvertsFloatWidthsWithANoteAndOtherKindsByCast) {
  write_npy(path("f64.npy"), vector<double>(DType::f64, {0.5, 1.5}));
  write_npy(path("u8.npy"), vector<uint8_t>(DType::u8, {3, 4}));
  const DataExpectation model = model_of({{"x", {}, DType::f32}}, {{"y", {}}});
  const OpenedData floats = open_data(map({{"inputs", path("f64.npy")}}), "data.train", model, 0);
  EXPECT_EQ(all_of<float>(*floats.rows, 0), (std::vector<float>{0.5f, 1.5f}));
  EXPECT_EQ(floats.notes, (std::vector<std::string>{"data.train.inputs.x: float64 in " + path("f64.npy") + " is read as float32"}));
  const Value cast = map({{"inputs", path("u8.npy")}, {"targets", path("u8.npy")}, {"cast", map({{"x", "float32"}, {"y", "float64"}})}});
  const OpenedData integers = open_data(cast, "data.train", model, 0);
  EXPECT_EQ(all_of<float>(*integers.rows, 0), (std::vector<float>{3, 4}));
  EXPECT_EQ(integers.rows->columns()[1].row.dtype, DType::f64);
  EXPECT_EQ(all_of<double>(*integers.rows, 1), (std::vector<double>{3, 4}));
}

TEST_F(Data, AddsOrLeavesOutALastAxisOfOneForInputsOnly) {
  write_npy(path("flat.npy"), vector<float>(DType::f32, {1, 2}));
  const float values[] = {1, 2};
  write_npy(path("column.npy"), Tensor::of<float>(DType::f32, {2, 1}, values));
  const Value description = map({{"inputs", map({{"a", path("flat.npy")}, {"b", path("column.npy")}})}, {"targets", path("column.npy")}});
  const OpenedData data = open_data(description, "data.train", model_of({{"a", {1}, DType::f32}, {"b", {}, DType::f32}}, {{"y", {}}}), 0);
  EXPECT_EQ(data.rows->columns()[0].row.shape, (Shape{1}));
  EXPECT_EQ(data.rows->columns()[1].row.shape, (Shape{}));
  EXPECT_EQ(data.rows->columns()[2].row.shape, (Shape{1}));
}

TEST_F(Data, TakesTheSizeOfAnOpenAxisFromTheData) {
  const OpenedData data = open_data(map({{"path", columns}, {"inputs", "/good/int64"}}), "data.train", model_of({{"text", {-1}, DType::i64}}), 0);
  EXPECT_EQ(data.rows->columns()[0].row.shape, (Shape{3}));
}

TEST_F(Data, JoinsTheFilesOfAGlobInTheOrderOfTheirNames) {
  write_npy(path("part_b.npy"), vector<float>(DType::f32, {3}));
  write_npy(path("part_a.npy"), vector<float>(DType::f32, {1, 2}));
  const OpenedData data = open_data(map({{"inputs", path("part_*.npy")}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  EXPECT_EQ(all_of<float>(*data.rows, 0), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(rows_of<float>(*data.rows, 0, {2, 0}), (std::vector<float>{3, 1}));
  const OpenedData twice = open_data(map({{"path", list({columns, columns})}, {"inputs", "/good/five"}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  EXPECT_EQ(twice.rows->rows(), 10);
}

TEST_F(Data, BeginsARelativePathAtTheFileThatNamesIt) {
  write_npy(path("x.npy"), vector<float>(DType::f32, {1}));
  Value input = "x.npy";
  input.with_place({std::make_shared<SourceText>(SourceText{path("job.yaml"), ""}), 3, 5});
  const OpenedData data = open_data(map({{"inputs", input}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  EXPECT_EQ(data.rows->rows(), 1);
}

TEST_F(Data, ChangesItsFingerprintWithTheContentOnly) {
  const DataExpectation model = model_of({{"x", {}, DType::f32}});
  const auto fingerprint = [&](const std::string& name) { return open_data(map({{"inputs", path(name)}}), "data.train", model, 0).rows->fingerprint(); };
  write_npy(path("a.npy"), vector<float>(DType::f32, {1, 2}));
  write_npy(path("b.npy"), vector<float>(DType::f32, {1, 2}));
  write_npy(path("c.npy"), vector<float>(DType::f32, {1, 3}));
  EXPECT_EQ(fingerprint("a.npy"), fingerprint("b.npy"));
  EXPECT_NE(fingerprint("a.npy"), fingerprint("c.npy"));
}

TEST_F(Data, ReportsAFileThatChangesDuringTheRun) {
  write_npy(path("x.npy"), vector<float>(DType::f32, {1, 2}));
  const OpenedData data = open_data(map({{"inputs", path("x.npy")}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  std::filesystem::resize_file(path("x.npy"), 130);
  EXPECT_NE(thrown_by([&] { all_of<float>(*data.rows, 0); }).find("changed since the job started (size 136 -> 130)"), std::string::npos);
  EXPECT_EQ(thrown_by([&] { data.rows->fingerprint(); }).substr(0, 3), "D13");
}

TEST_F(Data, ReportsValuesAndLabelsThatCannotBeTrainedOn) {
  const OpenedData data = open_data(map({{"path", columns}, {"inputs", "/good/not_finite"}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  EXPECT_EQ(rows_of<float>(*data.rows, 0, {0, 2}), (std::vector<float>{0, 2}));
  EXPECT_NE(thrown_by([&] { rows_of<float>(*data.rows, 0, {3, 2, 1}); }).find("2 of the 3 rows just read contain values that are not finite as float32, first at row 1"), std::string::npos);
  write_npy(path("y.npy"), vector<int64_t>(DType::i64, {9, 10, -1, 0}));
  const Value description = map({{"inputs", path("y.npy")}, {"targets", path("y.npy")}});
  const OpenedData labels = open_data(description, "data.train", model_of({{"x", {}, DType::i64}}, {{"y", {10}, 10}}), 0);
  EXPECT_EQ(rows_of<int64_t>(*labels.rows, 1, {3, 0}), (std::vector<int64_t>{0, 9}));
  EXPECT_NE(thrown_by([&] { rows_of<int64_t>(*labels.rows, 1, {0, 1}); }).find("label 10 at row 1; the model has 10 classes (0 to 9)"), std::string::npos);
  EXPECT_EQ(thrown_by([&] { rows_of<int64_t>(*labels.rows, 1, {2}); }).substr(0, 3), "D05");
}

TEST_F(Data, IsReadFromSeveralThreadsAtOnce) {
  const OpenedData data = open_data(map({{"path", columns}, {"inputs", "/good/float64"}}), "data.train", model_of({{"x", {3}, DType::f32}}), 0);
  const std::vector<float> expected = all_of<float>(*data.rows, 0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) wrong += all_of<float>(*data.rows, 0) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace lockstep
