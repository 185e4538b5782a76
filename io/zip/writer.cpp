#include "io/zip/writer.h"

#include <zlib.h>

#include <algorithm>
#include <concepts>
#include <utility>

namespace lockstep {

namespace zip {
namespace {

constexpr uint64_t limit_32 = 0xffffffff;
constexpr uint64_t limit_16 = 0xffff;
constexpr uint16_t version_plain = 20;
constexpr uint16_t version_zip64 = 45;
constexpr uint16_t utf8_names = 1 << 11;
constexpr uint16_t stored = 0;
constexpr uint16_t midnight = 0;
constexpr uint16_t first_of_january_1980 = (0 << 9) | (1 << 5) | 1;
constexpr uint16_t made_on_unix = 3 << 8;
constexpr uint32_t plain_file_rw_r_r = 0100644u << 16;
constexpr uint16_t zip64_extra = 1;

template <std::unsigned_integral T>
void put(std::vector<std::byte>& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

uint32_t clamped_32(uint64_t value) { return static_cast<uint32_t>(std::min(value, limit_32)); }
uint16_t clamped_16(uint64_t value) { return static_cast<uint16_t>(std::min(value, limit_16)); }

// ASCII names carry no flag, as in Python's archives.
uint16_t flags_of(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }) ? utf8_names : 0;
}

}  // namespace

void append_local_header(std::vector<std::byte>& archive, const Entry& entry) {
  const bool wide = entry.size >= limit_32;
  put(archive, uint32_t{0x04034b50});
  put(archive, wide ? version_zip64 : version_plain);
  put(archive, flags_of(entry.name));
  put(archive, stored);
  put(archive, midnight);
  put(archive, first_of_january_1980);
  put(archive, entry.crc);
  put(archive, wide ? uint32_t{limit_32} : static_cast<uint32_t>(entry.size));
  put(archive, wide ? uint32_t{limit_32} : static_cast<uint32_t>(entry.size));
  put(archive, static_cast<uint16_t>(entry.name.size()));
  put(archive, static_cast<uint16_t>(wide ? 20 : 0));
  put_text(archive, entry.name);
  if (!wide) return;
  put(archive, zip64_extra);
  put(archive, uint16_t{16});
  put(archive, entry.size);
  put(archive, entry.size);
}

void append_directory_header(std::vector<std::byte>& directory, const Entry& entry) {
  const bool wide_size = entry.size >= limit_32;
  const bool wide_offset = entry.offset >= limit_32;
  const uint16_t extra = static_cast<uint16_t>((wide_size ? 16 : 0) + (wide_offset ? 8 : 0));
  const uint16_t version = extra > 0 ? version_zip64 : version_plain;
  put(directory, uint32_t{0x02014b50});
  put(directory, static_cast<uint16_t>(made_on_unix | version));
  put(directory, version);
  put(directory, flags_of(entry.name));
  put(directory, stored);
  put(directory, midnight);
  put(directory, first_of_january_1980);
  put(directory, entry.crc);
  put(directory, wide_size ? uint32_t{limit_32} : static_cast<uint32_t>(entry.size));
  put(directory, wide_size ? uint32_t{limit_32} : static_cast<uint32_t>(entry.size));
  put(directory, static_cast<uint16_t>(entry.name.size()));
  put(directory, static_cast<uint16_t>(extra > 0 ? extra + 4 : 0));
  put(directory, uint16_t{0});  // comment
  put(directory, uint16_t{0});  // disk
  put(directory, uint16_t{0});  // internal attributes
  put(directory, plain_file_rw_r_r);
  put(directory, clamped_32(entry.offset));
  put_text(directory, entry.name);
  if (extra == 0) return;
  put(directory, zip64_extra);
  put(directory, extra);
  if (wide_size) {
    put(directory, entry.size);
    put(directory, entry.size);
  }
  if (wide_offset) put(directory, entry.offset);
}

void append_end(std::vector<std::byte>& archive, uint64_t entries, uint64_t size, uint64_t offset) {
  if (entries >= limit_16 || size >= limit_32 || offset >= limit_32) {
    put(archive, uint32_t{0x06064b50});
    put(archive, uint64_t{44});  // bytes of this record that follow
    put(archive, static_cast<uint16_t>(made_on_unix | version_zip64));
    put(archive, version_zip64);
    put(archive, uint32_t{0});  // this disk
    put(archive, uint32_t{0});  // the directory's disk
    put(archive, entries);
    put(archive, entries);
    put(archive, size);
    put(archive, offset);
    put(archive, uint32_t{0x07064b50});
    put(archive, uint32_t{0});
    put(archive, offset + size);
    put(archive, uint32_t{1});  // disks
  }
  put(archive, uint32_t{0x06054b50});
  put(archive, uint16_t{0});
  put(archive, uint16_t{0});
  put(archive, clamped_16(entries));
  put(archive, clamped_16(entries));
  put(archive, clamped_32(size));
  put(archive, clamped_32(offset));
  put(archive, uint16_t{0});
}

}  // namespace zip

uint64_t ZipWriter::add(std::string_view name, std::span<const std::byte> contents) {
  zip::Entry entry{name, 0, contents.size(), archive_.size()};
  entry.crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(contents.data()), contents.size()));
  zip::append_local_header(archive_, entry);
  const uint64_t start = archive_.size();
  archive_.insert(archive_.end(), contents.begin(), contents.end());
  zip::append_directory_header(directory_, entry);
  ++entries_;
  return start;
}

std::vector<std::byte> ZipWriter::finish() {
  const uint64_t offset = archive_.size();
  archive_.insert(archive_.end(), directory_.begin(), directory_.end());
  zip::append_end(archive_, entries_, directory_.size(), offset);
  return std::move(archive_);
}

}  // namespace lockstep
