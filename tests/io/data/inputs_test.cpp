#include "io/npy/npy.h"
#include "io/npy/npz.h"
#include "tests/io/data/files.h"

namespace lockstep {

namespace {

const std::string columns = std::string(SOURCE_ROOT) + "/tests/io/data/columns.h5";
const DataExpectation one = model_of({{"x", {2}, DType::f32}});
const DataExpectation two = model_of({{"keys", {2}, DType::i64}, {"scale", {}, DType::f32}});

}  // namespace

using Inputs = DataFiles;

TEST_F(Inputs, TakesADataSetForEachNameBelowAnHdf5Group) {
  const OpenedData data = open_inputs(columns + ":/good", model_of({{"int64", {3}, DType::i64}, {"a/b%", {3}, DType::f32}}));
  EXPECT_EQ(rows_of<int64_t>(*data.rows, 0, {1}), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(rows_of<float>(*data.rows, 1, {2}), (std::vector<float>{6, 7, 8}));
  EXPECT_EQ(data.rows->columns()[1].name, "a/b%");
}

TEST_F(Inputs, TakesTheDataSetItselfWhereTheModelHasOneInput) {
  const OpenedData data = open_inputs(columns + ":/good/float64", model_of({{"x", {3}, DType::f32}}));
  EXPECT_EQ(rows_of<float>(*data.rows, 0, {1}), (std::vector<float>{1.5f, 2.0f, 2.5f}));
  EXPECT_EQ(data.notes, (std::vector<std::string>{"inputs.x: float64 in " + columns + ": /good/float64 is read as float32"}));
}

TEST_F(Inputs, TakesNpyAndNpz) {
  const float values[] = {1, 2, 3, 4};
  write_npy(path("x.npy"), Tensor::of<float>(DType::f32, {2, 2}, values));
  write_npz(path("one.npz"), {{"arr_0", Tensor::of<float>(DType::f32, {2, 2}, values)}});
  const int64_t keys[] = {5, 6};
  write_npz(path("two.npz"), {{"scale", Tensor({DType::f32, {1}})}, {"x", Tensor::of<float>(DType::f32, {2, 2}, values)}, {"keys", Tensor::of<int64_t>(DType::i64, {1, 2}, keys)}});
  for (const char* specification : {"x.npy", "one.npz", "two.npz", "two.npz:x"}) {
    EXPECT_EQ(all_of<float>(*open_inputs(path(specification), one).rows, 0), (std::vector<float>{1, 2, 3, 4})) << specification;
  }
  EXPECT_EQ(all_of<int64_t>(*open_inputs(path("two.npz"), two).rows, 0), (std::vector<int64_t>{5, 6}));
}

TEST_F(Inputs, TakesCsvWithAndWithoutTitles) {
  for (const char* text : {"1,2\n3,4\n", "\xEF\xBB\xBF\"a\", b\r\n1,+2\r\n\r\n3e0,4.0", " 1 ,\t2\n3,4\n\n"}) {
    EXPECT_EQ(all_of<float>(*open_inputs(written("x.csv", text), one).rows, 0), (std::vector<float>{1, 2, 3, 4})) << text;
  }
  const OpenedData data = open_inputs(written("two.csv", "scale,keys_1,other,keys_0\n0.5,2,9,1\n0.25,4.000000000000000000e+00,9,9007199254740993\n"), two);
  EXPECT_EQ(all_of<int64_t>(*data.rows, 0), (std::vector<int64_t>{1, 2, 9007199254740993, 4}));
  EXPECT_EQ(all_of<float>(*data.rows, 1), (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(open_inputs(path("two.csv"), model_of({{"wide", {-1}, DType::f64}})).rows->columns()[0].row.shape, (Shape{4}));
}

TEST_F(Inputs, SayWhatIsWrong) {
  const float values[] = {1, 2};
  write_npy(path("x.npy"), Tensor::of<float>(DType::f32, {1, 2}, values));
  const DataExpectation integers = model_of({{"keys", {2}, DType::i64}});
  struct Case {
    std::string specification;
    const DataExpectation& model;
    std::string says;
  };
  const Case cases[] = {
      {path("absent.h5:/x"), one, "D01 error[D01] " + path("absent.h5") + ": cannot be opened: No such file"},
      {path("x.npy:/x"), one, "Y13 error[Y13] --inputs " + path("x.npy") + ":/x: a file of format npy has no arrays inside"},
      {path("x.npy"), two, "D12 error[D12] " + path("x.npy") + ": holds one array, the model has 2 inputs"},
      {path("x.npy"), integers, "keys: data is float32, input is int64; store it as int64"},
      {columns + ":/good", two, "D01 error[D01] " + columns + ": /good/keys: no such object"},
      {written("ragged.csv", "a,b\n1,2\n1,2,3\n"), one, "D02 error[D02] " + path("ragged.csv") + ":3: 3 fields, expected 2"},
      {written("text.csv", "1,2\n3,N/A\n"), one, "D03 error[D03] " + path("text.csv") + ":2:2: 'N/A' is not a number"},
      {written("first.csv", "1,N/A\n3,4\n"), one, "D03 error[D03] " + path("first.csv") + ":1:2: 'N/A' is not a number"},
      {written("fraction.csv", "1,2\n3,4.5\n"), integers, "D03 error[D03] " + path("fraction.csv") + ":2:2: '4.5' is no int64, which input 'keys' takes"},
      {written("narrow.csv", "1\n2\n"), one, "D12 error[D12] " + path("narrow.csv") + ": 1 columns for input 'x', whose rows are (2,)"},
      {written("untitled.csv", "1,2,3\n"), two, "needs a first line with titles"},
      {written("other.csv", "keys_0,keys_1,size\n1,2,3\n"), two, "no column for input 'scale': expected a title 'scale', or 'scale_0', 'scale_1', ..."},
      {written("titles.csv", "a,b\n"), one, "D01 error[D01] " + path("titles.csv") + ": has no rows"},
  };
  for (const Case& each : cases) {
    const std::string message = thrown_by([&] { open_inputs(each.specification, each.model); });
    EXPECT_NE(message.find(each.says), std::string::npos) << "expected " << each.says << "\nfound " << message;
  }
}

}  // namespace lockstep
