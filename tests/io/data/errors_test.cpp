#include "io/npy/npy.h"
#include "io/npy/npz.h"
#include "tests/io/data/files.h"

namespace lockstep {

namespace {

const std::string columns = std::string(SOURCE_ROOT) + "/tests/io/data/columns.h5";

}  // namespace

using DataErrors = DataFiles;

/// Each file as the only input of a model that takes float32 vectors of 3, or as told.
TEST_F(DataErrors, NameTheFileAndWhatIsWrongWithIt) {
  const std::string images = idx({4, 3}, counting(12));
  const std::string packed = gzipped(images);
  const float rows[] = {1, 2, 3, 4, 5, 6};
  write_npy(path("good.npy"), Tensor::of<float>(DType::f32, {2, 3}, rows));
  write_npy(path("square.npy"), Tensor::of<float>(DType::f32, {1, 2, 3}, rows));
  write_npy(path("none.npy"), Tensor({DType::f32, {0, 3}}));
  write_npy(path("number.npy"), Tensor({DType::f32, {}}));
  write_npy(path("integers.npy"), Tensor({DType::i64, {2, 3}}));
  write_npz(path("good.npz"), {{"features", Tensor({DType::f32, {2, 3}})}});
  const std::string random(4096, 'x');
  struct Case {
    std::string file;
    std::string says;
    DataExpectation::Input input = {"x", {3}, DType::f32};
  };
  const DataExpectation::Input bytes{"x", {3}, DType::u8};
  const Case cases[] = {
      {path("absent.npy"), "D01", {}},
      {path("absent.npy"), "No such file"},
      {written("empty.npy", ""), "D01 error[D01] " + path("empty.npy") + ": is empty"},
      {path("none.npy"), "D01 error[D01] " + path("none.npy") + ": has no rows"},
      {path(""), "is a directory"},
      {path("*.parquet"), "no file matches"},
      {written("noise", random), "the format cannot be told from the content (it starts with \"xxxxxxxxxxxx\"); known: hdf5, idx, npy, npz"},
      {path("number.npy"), "D12 error[D12] " + path("number.npy") + ": is a single number"},
      {path("square.npy"), "D12 error[D12] " + path("square.npy") + ": samples are (2, 3), model input 'x' is (3,); check which array"},
      {path("square.npy"), "samples are (2, 3), model input 'x' is (6,); declare the input with shape [2, 3] and add Flatten", {"x", {6}, DType::f32}},
      {path("good.npy"), "model input 'x' is (3, 1, 1); declare the input with shape [3] and add {type: Reshape, target_shape: [3, 1, 1]}", {"x", {3, 1, 1}, DType::f32}},
      {path("good.npy"), "D17 error[D17] " + path("good.npy") + ": x: data is float32, input is int64; add cast: {x: int64}", {"x", {3}, DType::i64}},
      {path("integers.npy"), "x: data is int64, input is float32; add cast: {x: float32}"},
      {written("object.npy", "\x93NUMPY\x01" + std::string("\x00\x30\x00", 3) + "{'descr':'|O','fortran_order':False,'shape':(2,)}"), "D08"},
      {written("twice.gz", gzipped(packed)), "D10 error[D10] " + path("twice.gz") + ": magic 0x1f8b0800: what was unpacked is still gzipped", bytes},
      {written("short.idx", images.substr(0, 20)), "D10 error[D10] " + path("short.idx") + ": the header says uint8 (4, 3): 24 bytes in all; there are 20", bytes},
      {written("long.idx", images + "x"), "24 bytes in all; there are 25", bytes},
      {written("long.gz", gzipped(images + "x")), "24 bytes in all; there are 25", bytes},
      {written("short.gz", gzipped(images.substr(0, 20))), "24 bytes in all; there are 20", bytes},
      {written("text.gz", gzipped("hello, world")), "D10 error[D10] " + path("text.gz") + ": magic 0x68656c6c is not IDX's", bytes},
      {written("bomb.gz", gzipped(idx({0xffffffff, 0xffff}, ""))), "uint8 (4294967295, 65535), more than 35 packed bytes can hold", bytes},
      {written("cut.gz", packed.substr(0, packed.size() - 9)), "D11 error[D11] " + path("cut.gz") + ": unexpected end after", bytes},
      {written("cut2.gz", packed.substr(0, packed.size() - 1)), "the file is truncated", bytes},
      {written("damaged.gz", packed.substr(0, 10) + "\xff\xff" + packed.substr(12)), "D11 error[D11] " + path("damaged.gz") + ": is damaged", bytes},
  };
  for (const Case& each : cases) {
    const std::string message = thrown_by([&] { open_data(map({{"inputs", each.file}}), "data.train", model_of({each.input}), 0); });
    EXPECT_NE(message.find(each.says), std::string::npos) << "expected " << each.says << "\nfound " << message;
  }
}

TEST_F(DataErrors, NameTheArrayInsideAFile) {
  write_npz(path("good.npz"), {{"features", Tensor({DType::f32, {2, 3}})}});
  std::ifstream file(columns, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  struct Case {
    std::string file;
    std::string array;
    std::string says;
  };
  const Case cases[] = {
      {path("good.npz"), "feature", "D08 error[D08] " + path("good.npz") + ": feature: the archive has no such array; did you mean 'features'?"},
      {columns, "/good/flaot32", "D01 error[D01] " + columns + ": /good/flaot32: no such object; did you mean 'float32'?; '/good/' has: "},
      {columns, "/good/float32/x", "'/good/float32' is not a group"},
      {columns, "/good", "D01 error[D01] " + columns + ": /good: is a group; expected a data set"},
      {columns, "/bad/external_link", "H07"},
      {columns, "/bad/external_storage", "H09"},
      {columns, "/bad/virtual", "H10"},
      {columns, "/bad/text", "H14 error[H14] " + columns + ": /bad/text: holds no numbers"},
      {columns, "/bad/scalar", "H16"},
      {columns, "/bad/none", "H16"},
      {columns, "/bad/never_written", "H23 error[H23] " + columns + ": /bad/never_written: has no stored values"},
      {columns, "/bad/empty", "D01 error[D01] " + columns + ": /bad/empty: has no rows"},
      {columns, "/bad/lzf", "H21 error[H21] " + columns + ": /bad/lzf: needs filter 32000"},
      {written("cut.h5", whole.substr(0, whole.size() / 2)), "/good/float32", "H40 error[H40] " + path("cut.h5")},
  };
  for (const Case& each : cases) {
    const std::string message = thrown_by([&] { open_data(map({{"path", each.file}, {"inputs", each.array}}), "data.train", model_of({{"x", {3}, DType::f32}}), 0); });
    EXPECT_NE(message.find(each.says), std::string::npos) << "expected " << each.says << "\nfound " << message;
  }
}

TEST_F(DataErrors, NameTheKeyOfTheDescription) {
  write_npy(path("a.npy"), Tensor({DType::f32, {2}}));
  write_npy(path("b.npy"), Tensor({DType::f32, {3}}));
  const std::string a = path("a.npy");
  const std::string b = path("b.npy");
  const DataExpectation one = model_of({{"image", {}, DType::f32}}, {{"logits", {}}});
  const DataExpectation two = model_of({{"image", {}, DType::f32}, {"mask", {}, DType::f32}}, {{"logits", {}}, {"aux", {}}});
  struct Case {
    const DataExpectation& model;
    Value description;
    std::string says;
  };
  const Case cases[] = {
      {one, map({{"inputs", a}, {"target", a}}), "Y09 error[Y09] unknown key 'target' in 'data.train'; did you mean 'targets'?"},
      {one, map({{"targets", a}}), "Y11 error[Y11] 'data.train.inputs.image' is required"},
      {one, map({{"inputs", map({{"imgae", a}})}}), "Y09 error[Y09] 'imgae' in 'data.train.inputs' is no input of the model; did you mean 'image'?; it has: image"},
      {one, map({{"inputs", a}, {"targets", map({{"logit", a}})}}), "Y09 error[Y09] 'logit' in 'data.train.targets' is no output of the model; did you mean 'logits'?"},
      {one, map({{"inputs", a}, {"targets", list({a, a})}}), "Y13 error[Y13] data.train.targets: 2 entries for 1 outputs (logits)"},
      {one, map({{"inputs", 3}}), "Y12 error[Y12] data.train.inputs.image: expected text, found"},
      {one, map({{"inputs", a}, {"format", "parquet"}}), "Y13 error[Y13] data.train.format: unknown 'parquet'; known: hdf5, idx, npy, npz, synthetic"},
      {one, map({{"inputs", a}, {"samples", 3}}), "Y10 error[Y10] 'data.train.samples' belongs to format: synthetic"},
      {one, map({{"inputs", "/x"}, {"format", "hdf5"}}), "Y11 error[Y11] data.train.path: format hdf5 needs the file"},
      {one, map({{"inputs", a}, {"path", a}}), "Y13 error[Y13] data.train.path: a file of format npy is one column"},
      {one, map({{"inputs", a}, {"cast", map({{"imag", "float32"}})}}), "Y09 error[Y09] 'imag' in 'data.train.cast' is no input or output of the model; did you mean 'image'?"},
      {one, map({{"inputs", a}, {"cast", map({{"image", "float23"}})}}), "Y13 error[Y13] data.train.cast.image: unknown dtype 'float23'"},
      {one, map({{"inputs", a}, {"cast", map({{"image", "int64"}})}}), "D17 error[D17] data.train.cast.image: the model's input is float32"},
      {one, map({{"inputs", a}, {"targets", b}}), "D06 error[D06] " + b + ": 3 rows, but " + a + " has 2"},
      {two, map({{"inputs", a}}), "Y12 error[Y12] data.train.inputs: the model has 2 inputs (image, mask)"},
      {two, map({{"inputs", list({a, a})}, {"targets", a}}), "Y12 error[Y12] data.train.targets: the model has 2 outputs (logits, aux)"},
      {two, map({{"inputs", map({{"image", a}})}}), "Y11 error[Y11] 'data.train.inputs.mask' is required"},
  };
  for (const Case& each : cases) {
    const std::string message = thrown_by([&] { open_data(each.description, "data.train", each.model, 0); });
    EXPECT_NE(message.find(each.says), std::string::npos) << "expected " << each.says << "\nfound " << message;
  }
}

TEST_F(DataErrors, AreAllToldAtOnce) {
  write_npy(path("a.npy"), Tensor({DType::i64, {2, 3}}));
  const DataExpectation model = model_of({{"x", {3}, DType::f32}, {"y", {4}, DType::i64}});
  try {
    open_data(map({{"inputs", list({path("a.npy"), path("a.npy")})}}), "data.train", model, 0);
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(error.problems()[0].code, "D17");
    EXPECT_EQ(error.problems()[1].code, "D12");
  }
}

TEST_F(DataErrors, LeaveReadersOfRowsThatAreNotThereWithAFault) {
  write_npy(path("a.npy"), Tensor({DType::f32, {2}}));
  const OpenedData data = open_data(map({{"inputs", path("a.npy")}}), "data.train", model_of({{"x", {}, DType::f32}}), 0);
  EXPECT_EQ(thrown_by([&] { rows_of<float>(*data.rows, 0, {2}); }).substr(0, 3), "X02");
  EXPECT_EQ(thrown_by([&] { rows_of<float>(*data.rows, 0, {-1}); }).substr(0, 3), "X02");
}

}  // namespace lockstep
