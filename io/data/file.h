#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A data file, open for reading. Reading is safe from several threads.
class File {
 public:
  /// Throws D01 when it is absent, a folder, unreadable or empty.
  explicit File(std::string path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  /// When it was opened.
  uint64_t size() const { return size_; }
  /// `out.size()` bytes from `offset`. Throws D13 when the file has become shorter since it was opened, D01 when the system can't read it.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  /// The first bytes: `count`, or all that there are.
  std::vector<std::byte> head(size_t count) const;
  /// Throws D13 when the size is no longer what it was.
  void check_unchanged() const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// Sizes and a hash of the contents of files, in this order; their names don't matter. A file below 64 MiB is hashed whole, a larger one at its head, its
/// tail and 64 places between. Throws D13 as File does.
std::string fingerprint_of(std::span<const std::shared_ptr<const File>> files);

}  // namespace lockstep
