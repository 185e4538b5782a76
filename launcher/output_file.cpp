#include "launcher/output_file.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/hdf5/writer.h"
#include "io/logs/number_text.h"
#include "io/npy/npy.h"
#include "io/npy/npz.h"

namespace lockstep {

namespace {

void write_csv(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::string text;
  std::vector<Tensor> columns;
  int64_t rows = 0;
  for (const NamedTensor& tensor : tensors) {
    rows = tensor.values.shape().empty() ? 1 : tensor.values.shape()[0];
    const int64_t width = rows > 0 ? tensor.values.elements() / rows : 0;
    for (int64_t i = 0; i < width; ++i) text += fmt::format("{}{}", text.empty() ? "" : ",", width == 1 ? tensor.name : fmt::format("{}_{}", tensor.name, i));
    columns.push_back(cast(tensor.values, DType::f32));
  }
  text += "\n";
  for (int64_t row = 0; row < rows; ++row) {
    bool first = true;
    for (const Tensor& column : columns) {
      const int64_t width = column.elements() / rows;
      for (int64_t i = 0; i < width; ++i) {
        if (!first) text += ",";
        first = false;
        append_number(text, column.as<float>()[static_cast<size_t>(row * width + i)]);
      }
    }
    text += "\n";
  }
  write_text_file(path, text);
}

}  // namespace

void write_text_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::ofstream stream(temporary, std::ios::binary);
  stream << text;
  stream.close();
  std::error_code failure;
  if (stream) std::filesystem::rename(temporary, path, failure);
  if (!stream || failure) throw Error("W01", path, "cannot be written; is the disk full?");
}

std::string path_component(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '%') {
      result += "%25";
    } else if (c == '/') {
      result += "%2F";
    } else {
      result += c;
    }
  }
  return result;
}

void write_tensors(const std::string& path, const std::string& group, const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> wide = tensors;
  for (NamedTensor& tensor : wide) {
    if (tensor.values.dtype() == DType::bf16) tensor.values = cast(tensor.values, DType::f32);
  }
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".h5" || extension == ".hdf5") {
    Hdf5Writer file = Hdf5Writer::to_file(path);
    file.group(group);
    for (const NamedTensor& tensor : wide) file.dataset(group + "/" + tensor.name, tensor.values);
    file.finish();
  } else if (extension == ".npz") {
    std::vector<std::pair<std::string, Tensor>> arrays;
    for (const NamedTensor& tensor : wide) arrays.emplace_back(tensor.name, tensor.values);
    write_npz(path, arrays);
  } else if (extension == ".npy") {
    if (wide.size() != 1) throw Error("Y41", "command line", fmt::format("'{}': a .npy file holds one array, there are {}; write .npz or .h5", path, wide.size()));
    write_npy(path, wide[0].values);
  } else if (extension == ".csv") {
    write_csv(path, wide);
  } else {
    throw Error("Y41", "command line", fmt::format("'{}': the ending says no format; known: .h5, .npz, .npy, .csv", path));
  }
}

}  // namespace lockstep
