#include "io/tensorflow/table.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/tensorflow/crc32c.h"

namespace lockstep::tensorflow {
namespace {

constexpr size_t footer_bytes = 48;
constexpr size_t trailer_bytes = 5;
constexpr uint64_t magic = 0xdb4775248b80fb57u;

uint32_t u32_at(std::string_view bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

class TableReader {
 public:
  TableReader(const std::string& place, std::string_view bytes) : place_(place), bytes_(bytes) {}

  std::map<std::string, std::string> read() {
    if (bytes_.size() < footer_bytes) fail("S03", fmt::format("is not a TensorBundle index: {} bytes are too short for its footer", bytes_.size()));
    uint64_t found = 0;
    std::memcpy(&found, bytes_.data() + bytes_.size() - 8, sizeof found);
    if (found != magic) fail("S03", "is not a TensorBundle index, or is truncated (bad magic number at its end)");
    std::string_view footer = bytes_.substr(bytes_.size() - footer_bytes, 40);
    const BlockHandle metaindex = take_handle(footer);
    const BlockHandle index = take_handle(footer);
    std::map<std::string, std::string> entries;
    std::string last_key;
    bool is_first = true;
    uint64_t key_bytes = 0;
    for (const auto& [separator, value] : entries_of(index)) {
      std::string_view handle = value;
      for (auto& [key, contents] : entries_of(take_handle(handle))) {
        if (!is_first && key <= last_key) fail("S09", fmt::format("keys out of order: '{}' after '{}'", printable(key), printable(last_key)));
        key_bytes += key.size();
        if (key_bytes > max_key_bytes) fail("S09", "has keys of more than 64 MiB in all");
        is_first = false;
        last_key = key;
        entries.emplace_hint(entries.end(), std::move(key), std::move(contents));
      }
    }
    // Holds nothing, but a damaged one tells of a damaged file.
    entries_of(metaindex);
    return entries;
  }

 private:
  using Entries = std::vector<std::pair<std::string, std::string>>;

  [[noreturn]] void fail(const char* code, const std::string& message) const { throw Error(code, place_, message); }

  uint64_t take_number(std::string_view& from) const {
    const auto number = take_varint(from);
    if (!number) fail("S07", "has a bad number: a varint that is cut off or overflows 64 bits");
    return *number;
  }

  BlockHandle take_handle(std::string_view& from) const {
    const uint64_t offset = take_number(from);
    const uint64_t size = take_number(from);
    return {offset, size};
  }

  Entries entries_of(BlockHandle handle) const {
    const uint64_t file = bytes_.size();
    if (handle.offset > file || handle.size > file || handle.size + trailer_bytes > file - handle.offset) {
      fail("S05", fmt::format("index block {}+{} lies beyond the file's {} bytes", handle.offset, handle.size, file));
    }
    const std::string_view checked = bytes_.substr(handle.offset, handle.size + 1);
    if (masked(crc32c(std::as_bytes(std::span(checked)))) != u32_at(bytes_, handle.offset + handle.size + 1)) {
      fail("S04", fmt::format("index block at {} is damaged (CRC)", handle.offset));
    }
    if (checked.back() != 0) fail("S06", "has compressed index blocks, which TensorFlow never writes: not supported");
    const std::string_view block = checked.substr(0, handle.size);
    if (block.size() < 4) fail("S05", fmt::format("index block at {} is too short", handle.offset));
    const uint64_t restarts = u32_at(block, block.size() - 4);
    if (restarts > (block.size() - 4) / 4) fail("S05", fmt::format("index block at {} has more restarts than bytes", handle.offset));
    std::string_view body = block.substr(0, block.size() - 4 - 4 * restarts);
    Entries entries;
    std::string key;
    while (!body.empty()) {
      const uint64_t shared = take_number(body);
      const uint64_t rest = take_number(body);
      const uint64_t length = take_number(body);
      if (shared > key.size() || rest > body.size() || length > body.size() - rest) fail("S09", fmt::format("an entry of index block {} has bad lengths", handle.offset));
      // A key repeats its prefix for free: without limits 1 MB of index would expand to gigabytes.
      if (shared + rest > max_key) fail("S09", "has a key longer than 4 KiB");
      key.resize(shared);
      key.append(body.substr(0, rest));
      entries.emplace_back(key, std::string(body.substr(rest, length)));
      body.remove_prefix(rest + length);
    }
    return entries;
  }

  static constexpr uint64_t max_key = 4096;
  static constexpr uint64_t max_key_bytes = uint64_t{64} << 20;

  const std::string& place_;
  std::string_view bytes_;
};

}  // namespace

std::map<std::string, std::string> read_table(const std::string& place, std::string_view bytes) { return TableReader(place, bytes).read(); }

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    value |= static_cast<uint64_t>(byte & 0x7fu) << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::tensorflow
