#include "io/npy/npy.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/error/error.h"
#include "io/npy/npz.h"

namespace lockstep {

namespace {

class Files : public ::testing::Test {
 protected:
  Files() : folder_(std::filesystem::path(::testing::TempDir()) / ("npy_" + std::to_string(getpid()))) { std::filesystem::create_directories(folder_); }
  ~Files() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string written(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path folder_;
};

/// A version 1 file as numpy lays it out.
std::string npy(std::string header, const std::string& values) {
  header += std::string(64 - (10 + header.size() + 1) % 64, ' ') + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) + static_cast<char>(header.size() >> 8) + header + values;
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  return {tensor.as<T>().begin(), tensor.as<T>().end()};
}

std::string code_thrown_by(const std::function<void()>& step, std::string* message = nullptr) {
  try {
    step();
  } catch (const Error& error) {
    if (message) *message = error.what();
    return error.problems().front().code;
  }
  return "none";
}

}  // namespace

using Npy = Files;
using Npz = Files;

// numpy 2.4.6: numpy.save(file, numpy.array([[1, 2, 3], [4, 5, 6]], '<f4')), numpy.array(7, '<i8'), numpy.array([True, False]).
TEST_F(Npy, WritesTheBytesThatNumpyWrites) {
  const float matrix[] = {1, 2, 3, 4, 5, 6};
  write_npy(path("matrix.npy"), Tensor::of<float>(DType::f32, {2, 3}, matrix));
  EXPECT_EQ(bytes_of(path("matrix.npy")), std::string("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                          \n\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@", 152));
  const int64_t scalar[] = {7};
  write_npy(path("scalar.npy"), Tensor::of<int64_t>(DType::i64, {}, scalar));
  EXPECT_EQ(bytes_of(path("scalar.npy")), std::string("\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (), }                                                              \n\x07\x00\x00\x00\x00\x00\x00\x00", 136));
  const bool flags[] = {true, false};
  write_npy(path("flags.npy"), Tensor::of<bool>(DType::boolean, {2}, flags));
  EXPECT_EQ(bytes_of(path("flags.npy")), std::string("\x93NUMPY\x01\x00v\x00{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }                                                            \n\x01\x00", 130));
}

TEST_F(Npy, ReadsWhatItWroteInEveryType) {
  for (const DType dtype : {DType::boolean, DType::u8, DType::u16, DType::u32, DType::u64, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::f32, DType::f64}) {
    const float values[] = {0, 1, 1, 0, 1, 1};
    const Tensor tensor = cast(Tensor::of<float>(DType::f32, {3, 2}, values), dtype);
    write_npy(path("x.npy"), tensor);
    const Tensor read = read_npy(path("x.npy"));
    EXPECT_EQ(read.type(), tensor.type());
    EXPECT_TRUE(std::ranges::equal(read.bytes(), tensor.bytes())) << name_of(dtype);
  }
}

TEST_F(Npy, WritesBfloat16AsFloat32) {
  const BFloat16 values[] = {BFloat16(1.5f), BFloat16(-2.0f)};
  write_npy(path("x.npy"), Tensor::of<BFloat16>(DType::bf16, {2}, values));
  const Tensor read = read_npy(path("x.npy"));
  EXPECT_EQ(read.type(), (TensorType{DType::f32, {2}}));
  EXPECT_EQ(values_of<float>(read), (std::vector<float>{1.5f, -2.0f}));
}

// numpy 2.4.6: numpy.save(file, numpy.asfortranarray(numpy.arange(6, dtype='>i4').reshape(2, 3)))
TEST_F(Npy, ConvertsFortranOrderAndBigEndian) {
  const std::string bytes("\x93NUMPY\x01\x00v\x00{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }                                                           \n\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x05", 152);
  const Tensor read = read_npy(written("x.npy", bytes));
  EXPECT_EQ(read.type(), (TensorType{DType::i32, {2, 3}}));
  EXPECT_EQ(values_of<int32_t>(read), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(Npy, ReordersThreeAxes) {
  std::string values;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) values += static_cast<char>(i * 12 + j * 4 + k);
    }
  }
  const Tensor read = read_npy(written("x.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", values)));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(read.as<uint8_t>()[i], i);
}

TEST_F(Npy, ReadsVersionTwoAndOtherSpellingsOfTheHeader) {
  const std::string header = "{\"shape\": (2L,), 'fortran_order':False,'descr':'u1'}";
  const std::string bytes = std::string("\x93NUMPY\x02\x00", 8) + static_cast<char>(header.size()) + std::string(3, '\0') + header + "\x05\x06";
  EXPECT_EQ(values_of<uint8_t>(read_npy(written("x.npy", bytes))), (std::vector<uint8_t>{5, 6}));
}

TEST_F(Npy, RefusesEveryOtherFile) {
  const std::string eight(8, '\0');
  const auto header = [](const std::string& descr, const std::string& shape) { return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }"; };
  struct Case {
    std::string bytes;
    std::string says;
  };
  const Case cases[] = {
      {"", "0 bytes are no .npy file"},
      {"x,y\n1,2\n3,4\n5,6\n", "doesn't begin with \\x93NUMPY"},
      {npy(header("'|O'", "(2,)"), eight), "object arrays are refused"},
      {npy(header("'<U3'", "(2,)"), eight), "text ('<U3') is refused"},
      {npy(header("[('a', '<f4')]", "(2,)"), eight), "structured elements are refused"},
      {npy(header("'<c8'", "(1,)"), eight), "elements of type '<c8' are refused"},
      {npy(header("'|V2'", "(1,)"), eight), "perhaps bfloat16"},
      {npy(header("'<f4'", "(3,)"), eight), "float32 (3,) needs 12 bytes, the file has 8"},
      {npy(header("'<f4'", "(4294967296, 4294967296)"), eight), "overflows 64 bits"},
      {npy(header("'<f4'", "(-1,)"), eight), "expected the size of an axis before \"-1,)"},
      {npy("{'descr': '<f4', 'shape': (2,), }", eight), "must have the keys"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }", eight), "must be True or False"},
      {npy(header("'<f4'", "(2,)") + "", "").substr(0, 60), "truncated: the header ends at byte 128, the file at 60"},
      {npy("{'descr': '<f4', 'color': 'red'}", eight), "unknown key 'color'"},
      {npy("[1, 2]", eight), "expected '{'"},
      {std::string("\x93NUMPY\x09\x00", 8) + eight, "version 9"},
  };
  for (const Case& each : cases) {
    std::string message;
    EXPECT_EQ(code_thrown_by([&] { read_npy(written("x.npy", each.bytes)); }, &message), "D08") << each.says;
    EXPECT_NE(message.find(each.says), std::string::npos) << message;
    EXPECT_NE(message.find(path("x.npy")), std::string::npos) << message;
  }
  EXPECT_EQ(code_thrown_by([&] { read_npy(path("absent.npy")); }), "D01");
  EXPECT_EQ(code_thrown_by([&] { read_npy(path("")); }), "D01");
}

TEST_F(Npz, ReadsWhatItWroteAndWritesTheSameBytesAgain) {
  const float kernel[] = {1, 2};
  const int64_t count[] = {9};
  const std::vector<std::pair<std::string, Tensor>> arrays = {{"dense/kernel", Tensor::of<float>(DType::f32, {1, 2}, kernel)}, {"count", Tensor::of<int64_t>(DType::i64, {}, count)}};
  write_npz(path("a.npz"), arrays);
  write_npz(path("b.npz"), arrays);
  EXPECT_EQ(bytes_of(path("a.npz")), bytes_of(path("b.npz")));
  EXPECT_EQ(npz_names(path("a.npz")), (std::vector<std::string>{"dense/kernel", "count"}));
  EXPECT_EQ(values_of<float>(read_npz(path("a.npz"), "dense/kernel")), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of<int64_t>(read_npz(path("a.npz"), "count")), (std::vector<int64_t>{9}));
}

TEST_F(Npz, NamesWhatTheArchiveHasWhenAnArrayIsAbsent) {
  write_npz(path("a.npz"), {{"images", Tensor({DType::u8, {1}})}, {"labels", Tensor({DType::u8, {1}})}});
  std::string message;
  EXPECT_EQ(code_thrown_by([&] { read_npz(path("a.npz"), "lables"); }, &message), "D08");
  EXPECT_NE(message.find("did you mean 'labels'?; it has: images, labels"), std::string::npos) << message;
}

TEST_F(Npz, RefusesDamagedArchives) {
  const float values[] = {1, 2};
  write_npz(path("a.npz"), {{"x", Tensor::of<float>(DType::f32, {2}, values)}});
  std::string bytes = bytes_of(path("a.npz"));
  std::string message;
  EXPECT_EQ(code_thrown_by([&] { npz_names(written("half.npz", bytes.substr(0, bytes.size() / 2))); }, &message), "D08");
  EXPECT_NE(message.find("truncated?"), std::string::npos) << message;
  // The last value's last byte: only the checksum can tell.
  const size_t value = bytes.find(std::string("\x00\x00\x00\x40PK", 6));
  ASSERT_NE(value, std::string::npos);
  bytes[value + 3] = '\x41';
  EXPECT_EQ(code_thrown_by([&] { read_npz(written("bit.npz", bytes), "x"); }, &message), "D08");
  EXPECT_NE(message.find("CRC"), std::string::npos) << message;
  EXPECT_EQ(code_thrown_by([&] { npz_names(path("absent.npz")); }), "D01");
}

// The archive claims that 1 KiB expands to 4 GB; nothing of that size is allocated.
TEST_F(Npz, RefusesABombBeforeItExpands) {
  write_npz(path("a.npz"), {{"x", Tensor({DType::u8, {1000}})}});
  std::string bytes = bytes_of(path("a.npz"));
  const size_t directory = bytes.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  const uint32_t size = 0xf0000000;
  const uint16_t deflate = 8;
  std::memcpy(bytes.data() + directory + 24, &size, 4);
  std::memcpy(bytes.data() + directory + 10, &deflate, 2);
  std::string message;
  EXPECT_EQ(code_thrown_by([&] { read_npz(written("bomb.npz", bytes), "x"); }, &message), "D09");
  EXPECT_NE(message.find("would expand"), std::string::npos) << message;
}

}  // namespace lockstep
