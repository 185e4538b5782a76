#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A regular file opened for reading at any offset. What a reader allocates is checked against size() first.
class InputFile {
 public:
  /// `code` is the reader's code for a file that is missing or can't be read: "H01", "Z01", "S02". Throws it for folders, pipes and devices, too.
  InputFile(std::string path, std::string code);
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `into`; throws when the file ends before.
  void read_at(uint64_t offset, std::span<std::byte> into) const;
  /// The whole file; throws when it is larger than `limit` bytes.
  std::string read_all(uint64_t limit) const;

 private:
  std::string path_;
  std::string code_;
  int file_ = -1;
  uint64_t size_ = 0;
};

/// "1.5 GiB", "3 KiB", "812 bytes": for messages.
std::string text_of_bytes(uint64_t bytes);

}  // namespace lockstep
