#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/data/file.h"

namespace lockstep {

bool is_gzip(std::span<const std::byte> head);

/// The bytes that a .gz file holds, from its start. Throws D11 with the position when the file ends early or is damaged (zlib's checksum included).
/// Source: RFC 1952; members that follow one another are one stream, zeros behind them are left alone.
class Gunzip {
 public:
  explicit Gunzip(const File& file);
  ~Gunzip();

  /// Fills `out`, or as much of it as is left; returns the count.
  size_t read(std::span<std::byte> out);

 private:
  struct Stream;

  bool refill();

  const File& file_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> buffer_;
  uint64_t offset_ = 0;  ///< of the next bytes of the file
  uint64_t given_ = 0;   ///< bytes read so far
  bool between_ = true;  ///< no member has begun, or the last one has ended
  bool ended_ = false;
};

/// Unpacks a .gz file of one member that holds exactly `out.size()` bytes, in one go: several times faster than Gunzip. False when it is another or
/// damaged; `out` is then undefined, and Gunzip tells what is wrong.
bool unpack_whole(const File& file, std::span<std::byte> out);

/// The count of bytes that the file's end states, modulo 2^32; a truncated file states nonsense.
uint32_t gzip_stated_size(const File& file);

}  // namespace lockstep
