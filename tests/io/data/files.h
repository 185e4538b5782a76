#pragma once

#include <unistd.h>
#include <zlib.h>

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

inline std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
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
