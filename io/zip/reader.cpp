#include "io/zip/reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {
namespace {

constexpr uint32_t local_signature = 0x04034b50;
constexpr uint32_t directory_signature = 0x02014b50;
constexpr uint32_t end_signature = 0x06054b50;
constexpr uint32_t zip64_end_signature = 0x06064b50;
constexpr uint32_t zip64_locator_signature = 0x07064b50;
constexpr size_t end_bytes = 22;
constexpr size_t max_comment = 65535;
constexpr size_t directory_entry_bytes = 46;
constexpr size_t local_header_bytes = 30;
constexpr uint64_t max_members = 65535;
constexpr size_t max_name = 1024;
constexpr uint64_t max_directory_bytes = uint64_t{256} << 20;
constexpr uint16_t stored_method = 0;
constexpr uint16_t deflate_method = 8;
constexpr uint16_t zip64_field = 1;
constexpr uint32_t in_zip64 = 0xffffffff;
// Deflate can't do better than 1032:1.
constexpr uint64_t max_expansion = 1032;

template <class T>
T number_at(std::string_view bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string text_at(const InputFile& file, uint64_t offset, uint64_t size) {
  std::string text(size, '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_legal(const std::string& name) {
  if (name.empty() || name.size() > max_name || name.front() == '/' || name.find('\0') != std::string::npos || name.find('\\') != std::string::npos) return false;
  if (name.size() > 1 && name[1] == ':') return false;
  const std::string framed = "/" + name + "/";
  return framed.find("/../") == std::string::npos && framed.find("/./") == std::string::npos;
}

// Sizes and the offset that don't fit in 32 bits stand in the extra field, those only, in this order.
bool take_zip64(std::string_view extra, bool has_size, uint64_t& size, bool has_stored, uint64_t& stored, bool has_offset, uint64_t& offset) {
  if (!has_size && !has_stored && !has_offset) return true;
  while (extra.size() >= 4) {
    const auto id = number_at<uint16_t>(extra, 0);
    const size_t length = number_at<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    if (id == zip64_field) {
      std::string_view field = extra.substr(4, length);
      for (const auto& [is_there, value] : {std::pair(has_size, &size), std::pair(has_stored, &stored), std::pair(has_offset, &offset)}) {
        if (!is_there) continue;
        if (field.size() < 8) return false;
        *value = number_at<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4 + length);
  }
  return false;
}

}  // namespace

bool is_zip(const std::string& path) {
  const InputFile file(path, "Z01");
  if (file.size() < 4) return false;
  const auto signature = number_at<uint32_t>(text_at(file, 0, 4), 0);
  return signature == local_signature || signature == end_signature;
}

ZipReader::ZipReader(const std::string& path) : file_(path, "Z01") {
  read_directory();
  check_names();
  check_local_headers();
}

void ZipReader::fail(const char* code, const std::string& message) const { throw Error(code, file_.path(), message); }

void ZipReader::read_directory() {
  const uint64_t tail_size = std::min<uint64_t>(file_.size(), end_bytes + max_comment);
  const std::string tail = text_at(file_, file_.size() - tail_size, tail_size);
  size_t at = std::string::npos;
  for (size_t i = tail.size() >= end_bytes ? tail.size() - end_bytes + 1 : 0; i-- > 0;) {
    if (number_at<uint32_t>(tail, i) == end_signature && i + end_bytes + number_at<uint16_t>(tail, i + 20) == tail.size()) {
      at = i;
      break;
    }
  }
  if (at == std::string::npos) fail("Z01", "is not a .keras archive: no zip directory (central directory) at its end; truncated?");
  if (number_at<uint16_t>(tail, at + 4) != number_at<uint16_t>(tail, at + 6)) fail("Z01", "the zip archive has several disks: not supported");
  uint64_t count = number_at<uint16_t>(tail, at + 10);
  uint64_t size = number_at<uint32_t>(tail, at + 12);
  uint64_t offset = number_at<uint32_t>(tail, at + 16);
  uint64_t end = file_.size() - tail_size + at;
  if (count == 0xffff || size == in_zip64 || offset == in_zip64) {
    if (end < 20) fail("Z01", "is truncated: no zip64 directory");
    const std::string locator = text_at(file_, end - 20, 20);
    const auto record_offset = number_at<uint64_t>(locator, 8);
    if (number_at<uint32_t>(locator, 0) != zip64_locator_signature || record_offset > end - 20 || end - 20 - record_offset < 56) fail("Z01", "its zip64 directory is damaged");
    const std::string record = text_at(file_, record_offset, 56);
    if (number_at<uint32_t>(record, 0) != zip64_end_signature) fail("Z01", "its zip64 directory is damaged");
    count = number_at<uint64_t>(record, 32);
    size = number_at<uint64_t>(record, 40);
    offset = number_at<uint64_t>(record, 48);
    end = record_offset;
  }
  if (count > max_members) fail("Z12", fmt::format("has too many members ({}); the limit is {}", count, max_members));
  if (size > end || offset > end - size) fail("Z01", fmt::format("its zip directory at {} of {} bytes lies beyond its end; truncated?", offset, size));
  if (size > max_directory_bytes || count * directory_entry_bytes > size) fail("Z01", fmt::format("its zip directory of {} bytes can't hold {} members", size, count));
  directory_offset_ = offset;
  const std::string directory = text_at(file_, offset, size);
  std::string_view rest = directory;
  for (uint64_t i = 0; i < count; ++i) {
    if (rest.size() < directory_entry_bytes || number_at<uint32_t>(rest, 0) != directory_signature) fail("Z01", fmt::format("entry {} of its zip directory is damaged", i));
    const auto flags = number_at<uint16_t>(rest, 8);
    const size_t name_size = number_at<uint16_t>(rest, 28);
    const size_t extra_size = number_at<uint16_t>(rest, 30);
    const size_t comment_size = number_at<uint16_t>(rest, 32);
    if (name_size + extra_size + comment_size > rest.size() - directory_entry_bytes) fail("Z01", fmt::format("entry {} of its zip directory is damaged", i));
    Member member;
    member.name = std::string(rest.substr(directory_entry_bytes, name_size));
    member.method = number_at<uint16_t>(rest, 10);
    member.crc = number_at<uint32_t>(rest, 16);
    member.stored = number_at<uint32_t>(rest, 20);
    member.size = number_at<uint32_t>(rest, 24);
    member.header = number_at<uint32_t>(rest, 42);
    const std::string shown = printable(member.name);
    if (!take_zip64(rest.substr(directory_entry_bytes + name_size, extra_size), member.size == in_zip64, member.size, member.stored == in_zip64, member.stored, member.header == in_zip64,
                    member.header)) {
      fail("Z01", fmt::format("'{}': its zip64 field is damaged", shown));
    }
    if ((flags & 1u) != 0) fail("Z06", fmt::format("'{}' is encrypted", shown));
    const auto mode = number_at<uint32_t>(rest, 38) >> 16;
    const uint32_t kind = mode & 0170000u;
    if (kind != 0 && kind != 0100000u && !(kind == 0040000u && member.name.ends_with('/'))) fail("Z05", fmt::format("'{}' is not a regular file", shown));
    members_.push_back(std::move(member));
    rest.remove_prefix(directory_entry_bytes + name_size + extra_size + comment_size);
  }
}

void ZipReader::check_names() const {
  std::set<std::string_view> names;
  for (const Member& member : members_) {
    const std::string shown = printable(member.name.substr(0, max_name));
    if (!is_legal(member.name.ends_with('/') ? member.name.substr(0, member.name.size() - 1) : member.name)) fail("Z04", fmt::format("illegal member name '{}'", shown));
    if (!names.insert(member.name).second) fail("Z03", fmt::format("'{}' is stored twice (duplicate): refused", shown));
    if (member.method != stored_method && member.method != deflate_method) fail("Z07", fmt::format("'{}': compression method {} is not supported; Keras uses none", shown, member.method));
    if (member.stored > file_.size()) fail("Z11", fmt::format("'{}' claims a size of {}; the archive is {}", shown, text_of_bytes(member.stored), text_of_bytes(file_.size())));
    if (member.method == stored_method && member.size != member.stored) fail("Z09", fmt::format("'{}' is not compressed, but has two sizes", shown));
    if (member.size / max_expansion > member.stored) fail("Z11", fmt::format("'{}' would expand to a size of {} from {}", shown, text_of_bytes(member.size), text_of_bytes(member.stored)));
  }
}

void ZipReader::check_local_headers() {
  std::vector<Member*> in_order;
  for (Member& member : members_) in_order.push_back(&member);
  std::sort(in_order.begin(), in_order.end(), [](const Member* a, const Member* b) { return a->header < b->header; });
  uint64_t end = 0;
  const Member* before = nullptr;
  for (Member* member : in_order) {
    const std::string shown = printable(member->name);
    if (member->header < end) fail("Z10", fmt::format("members '{}' and '{}' overlap", before != nullptr ? printable(before->name) : "", shown));
    if (member->header > directory_offset_ || directory_offset_ - member->header < local_header_bytes) fail("Z11", fmt::format("'{}' lies beyond the archive's end", shown));
    const std::string header = text_at(file_, member->header, local_header_bytes);
    const size_t name_size = number_at<uint16_t>(header, 26);
    const size_t extra_size = number_at<uint16_t>(header, 28);
    const auto flags = number_at<uint16_t>(header, 6);
    if (number_at<uint32_t>(header, 0) != local_signature || name_size + extra_size > directory_offset_ - member->header - local_header_bytes) {
      fail("Z09", fmt::format("the header in front of '{}' is damaged", shown));
    }
    const std::string names = text_at(file_, member->header + local_header_bytes, name_size + extra_size);
    uint64_t stored = number_at<uint32_t>(header, 18);
    uint64_t size = number_at<uint32_t>(header, 22);
    uint64_t no_offset = 0;
    const bool is_good = take_zip64(std::string_view(names).substr(name_size), size == in_zip64, size, stored == in_zip64, stored, false, no_offset);
    // Bit 3: a writer that couldn't seek left CRC and sizes to a record behind the bytes.
    const bool is_streamed = (flags & 8u) != 0;
    const bool agrees = names.substr(0, name_size) == member->name && number_at<uint16_t>(header, 8) == member->method &&
                        (is_streamed || (stored == member->stored && size == member->size && number_at<uint32_t>(header, 14) == member->crc));
    if (!is_good || !agrees) fail("Z09", fmt::format("local and central headers of '{}' disagree", shown));
    member->data = member->header + local_header_bytes + name_size + extra_size;
    if (member->stored > directory_offset_ - member->data) fail("Z11", fmt::format("'{}' claims a size of {}, beyond the archive's end", shown, text_of_bytes(member->stored)));
    end = member->data + member->stored;
    before = member;
  }
}

bool ZipReader::contains(std::string_view name) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& member) { return member.name == name; });
}

std::vector<std::byte> ZipReader::read(std::string_view name, uint64_t limit) const {
  const auto member = std::find_if(members_.begin(), members_.end(), [&](const Member& candidate) { return candidate.name == name; });
  if (member == members_.end()) {
    std::string names;
    for (size_t i = 0; i < members_.size() && i < 8; ++i) names += (i > 0 ? ", " : "") + printable(members_[i].name);
    fail("Z02", fmt::format("no {}; the archive holds: {}", name, names.empty() ? "nothing" : names));
  }
  if (member->size > limit) fail("Z11", fmt::format("'{}' has a size of {}; the limit is {}", name, text_of_bytes(member->size), text_of_bytes(limit)));
  std::vector<std::byte> bytes(member->stored);
  file_.read_at(member->data, bytes);
  if (member->method == deflate_method) {
    std::vector<std::byte> contents(member->size);
    z_stream stream{};
    // Negative: raw deflate, without zlib's own header.
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error("X02", file_.path(), "zlib can't start");
    size_t taken = 0;
    size_t made = 0;
    int status = Z_OK;
    while (status == Z_OK) {
      // zlib counts in 32 bits.
      constexpr size_t most = size_t{1} << 30;
      stream.next_in = reinterpret_cast<Bytef*>(bytes.data() + taken);
      stream.avail_in = static_cast<uInt>(std::min(most, bytes.size() - taken));
      stream.next_out = reinterpret_cast<Bytef*>(contents.data() + made);
      stream.avail_out = static_cast<uInt>(std::min(most, contents.size() - made));
      const size_t in = stream.avail_in;
      const size_t out = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      taken += in - stream.avail_in;
      made += out - stream.avail_out;
      if (status == Z_OK && in == stream.avail_in && out == stream.avail_out) break;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || made != contents.size() || taken != bytes.size()) fail("Z08", fmt::format("'{}' is damaged: its compressed bytes don't give its size of {}", name, contents.size()));
    bytes = std::move(contents);
  }
  const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (crc != member->crc) fail("Z08", fmt::format("'{}' is damaged (CRC {:08x}, stored {:08x})", name, crc, member->crc));
  return bytes;
}

}  // namespace lockstep
