#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/model_file/input_file.h"

namespace lockstep {

/// A zip archive from an unknown source. All of its directory is checked when it is opened: names, kinds, methods, sizes, overlaps, and that the header in
/// front of each member agrees. Members are stored or deflated; zip64 is read.
///
///   end record       "PK\5\6": count, size and offset of the directory (0xffff.. : see the zip64 record, "PK\6\6", found by its locator, "PK\6\7")
///   directory        "PK\1\2" for each member: flags, method, CRC-32, sizes, name, offset of its local header
///   local header     "PK\3\4": the same again, then the bytes
/// Source: PKWARE's APPNOTE.TXT 6.3.10, section 4.3.
class ZipReader {
 public:
  struct Member {
    std::string name;
    uint16_t method = 0;  ///< 0: stored, 8: deflated
    uint32_t crc = 0;
    uint64_t stored = 0;  ///< bytes in the archive
    uint64_t size = 0;    ///< bytes of contents
    uint64_t header = 0;  ///< offset of the local header
    uint64_t data = 0;    ///< offset of the bytes
  };

  /// Throws Error Z01 to Z12.
  explicit ZipReader(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<Member>& members() const { return members_; }
  bool contains(std::string_view name) const;
  /// A member's contents. Throws Z02 when it is absent, Z11 when it is larger than `limit` bytes, Z08 when its checksum is wrong.
  std::vector<std::byte> read(std::string_view name, uint64_t limit) const;

 private:
  void read_directory();
  void check_names() const;
  void check_local_headers();
  [[noreturn]] void fail(const char* code, const std::string& message) const;

  InputFile file_;
  uint64_t directory_offset_ = 0;
  std::vector<Member> members_;
};

/// Whether a file begins as zip archives do.
bool is_zip(const std::string& path);

}  // namespace lockstep
