#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint.h"

namespace lockstep {

/// A folder of its own, gone at the end; in memory where there is such a place, because some tests call fsync thousands of times.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = access(memory.c_str(), W_OK) == 0;
    std::string pattern = ((usable ? memory : std::filesystem::temp_directory_path()) / "lockstep_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Error("X01", pattern, "no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text_to(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary | std::ios::trunc) << text; }

inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

/// A small checkpoint: model.keras holds "weights <mark>" and, from byte 8 on, tensor 'd1/kernel'.
inline CheckpointContent content_of(int64_t step, const std::string& mark = "a") {
  CheckpointContent content;
  content.step = step;
  const Tensor kernel = Tensor::of<uint8_t>(DType::u8, {4}, std::vector<uint8_t>{1, 2, 3, static_cast<uint8_t>(mark[0])});
  std::vector<std::byte> model = bytes_of("weights ");
  model.insert(model.end(), kernel.bytes().begin(), kernel.bytes().end());
  content.tensors = {record_of("d1/kernel", kernel, "model.keras", model.size() - 4)};
  content.files = {{"model.keras", std::move(model)}, {"custom_layers.py", bytes_of("# " + mark + "\n")}};
  content.state.set("position", Value(Value::Map{{"epoch", 1}, {"samples", step * 32}}));
  content.state.set("mark", mark);
  content.facts.set("processor", "test");
  return content;
}

}  // namespace lockstep
