#pragma once

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error/error.h"
#include "core/trainer/row_source.h"
#include "core/value/value.h"
#include "io/data/data.h"

namespace lockstep {

/// A folder of small data files that goes with the test.
class DataFiles : public ::testing::Test {
 protected:
  DataFiles() : folder_(std::filesystem::path(::testing::TempDir()) / ("data_" + std::to_string(getpid()))) { std::filesystem::create_directories(folder_); }
  ~DataFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string written(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8), static_cast<char>(value)};
}

/// An IDX file of bytes (type 8) unless another type is given.
inline std::string idx(const std::vector<uint32_t>& shape, const std::string& values, char type = 8) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) bytes += big_endian(size);
  return bytes + values;
}

/// 0, 1, 2, ... as bytes.
inline std::string counting(size_t count) {
  std::string bytes(count, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

/// A .gz file whose blocks are stored, not compressed (RFC 1951, 3.2.4; RFC 1952).
inline std::string gzipped(const std::string& bytes) {
  const auto little_endian = [](uint32_t value, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  constexpr size_t longest = 0xffff;
  for (size_t at = 0; at == 0 || at < bytes.size(); at += longest) {
    const std::string block = bytes.substr(at, longest);
    const auto size = static_cast<uint32_t>(block.size());
    packed += std::string(1, at + longest >= bytes.size() ? '\1' : '\0') + little_endian(size, 2) + little_endian(~size, 2) + block;
  }
  return packed + little_endian(~crc, 4) + little_endian(static_cast<uint32_t>(bytes.size()), 4);
}

inline Value map(Value::Map members) { return Value(std::move(members)); }
inline Value list(Value::List members) { return Value(std::move(members)); }

/// The values of some rows of a column.
template <class T>
std::vector<T> rows_of(const RowSource& source, size_t column, const std::vector<int64_t>& rows) {
  std::vector<T> values(rows.size() * static_cast<size_t>(source.columns().at(column).row.elements()));
  source.read(column, rows, std::as_writable_bytes(std::span(values)));
  return values;
}

template <class T>
std::vector<T> all_of(const RowSource& source, size_t column) {
  std::vector<int64_t> rows(static_cast<size_t>(source.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows_of<T>(source, column, rows);
}

/// "D06 message", or "" when nothing is thrown.
inline std::string thrown_by(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.problems().front().code + " " + error.what();
  }
  return "";
}

inline DataExpectation model_of(std::vector<DataExpectation::Input> inputs, std::vector<DataExpectation::Output> outputs = {}) { return {std::move(inputs), std::move(outputs)}; }

}  // namespace lockstep
