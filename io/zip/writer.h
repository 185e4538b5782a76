#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A zip archive of stored (not compressed) entries, as Keras writes .keras files. Every entry is dated 1980-01-01, so that the bytes are a function
/// of names and contents. Entries, sizes and offsets past the old limits (65,535 and 4 GiB) use zip64.
/// Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.
class ZipWriter {
 public:
  /// `expected_bytes` of contents save copies while the archive grows.
  explicit ZipWriter(size_t expected_bytes = 0) { archive_.reserve(expected_bytes); }

  /// The name is UTF-8, with '/' between folders. Returns where the contents start in the archive.
  uint64_t add(std::string_view name, std::span<const std::byte> contents);
  std::vector<std::byte> finish();

 private:
  std::vector<std::byte> archive_;
  std::vector<std::byte> directory_;
  uint64_t entries_ = 0;
};

/// The archive's records, which hold no contents.
namespace zip {

struct Entry {
  std::string_view name;
  uint32_t crc = 0;     ///< CRC-32 of the contents
  uint64_t size = 0;    ///< bytes of the contents
  uint64_t offset = 0;  ///< of the entry's local header in the archive
};

/// What stands in front of the contents.
void append_local_header(std::vector<std::byte>& archive, const Entry& entry);
/// The entry's line in the directory at the end.
void append_directory_header(std::vector<std::byte>& directory, const Entry& entry);
/// What stands behind the directory, which has `entries` lines in `size` bytes from `offset` on.
void append_end(std::vector<std::byte>& archive, uint64_t entries, uint64_t size, uint64_t offset);

}  // namespace zip

}  // namespace lockstep
