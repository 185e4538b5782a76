#include "io/logs/event_log.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "io/checkpoint/file_operations.h"
#include "io/checkpoint/process.h"
#include "io/tensorflow/crc32c.h"

namespace lockstep {

namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.";
constexpr std::string_view file_version = "brain.Event:2";

enum WireType : uint64_t { varint = 0,
                           fixed64 = 1,
                           delimited = 2,
                           fixed32 = 5 };
constexpr uint64_t event_wall_time = 1;
constexpr uint64_t event_step = 2;
constexpr uint64_t event_file_version = 3;
constexpr uint64_t event_summary = 5;
constexpr uint64_t summary_value = 1;
constexpr uint64_t value_tag = 1;
constexpr uint64_t value_simple_value = 2;

template <class T>
void append_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, uint64_t field, WireType type) { append_varint(out, (field << 3) | type); }

void append_delimited(std::string& out, uint64_t field, std::string_view bytes) {
  append_key(out, field, delimited);
  append_varint(out, bytes.size());
  out += bytes;
}

template <class T>
T raw_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

uint32_t checksum(std::string_view bytes) { return masked(crc32c(std::as_bytes(std::span(bytes)))); }

bool read_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// 0 where the event has none, as for the file's version.
int64_t step_of(std::string_view event) {
  uint64_t key = 0;
  uint64_t value = 0;
  while (read_varint(event, key)) {
    size_t skipped = 0;
    switch (key & 7) {
      case varint:
        if (!read_varint(event, value)) return 0;
        if (key >> 3 == event_step) return static_cast<int64_t>(value);
        break;
      case fixed64:
        skipped = 8;
        break;
      case fixed32:
        skipped = 4;
        break;
      case delimited:
        if (!read_varint(event, value)) return 0;
        skipped = value;
        break;
      default:
        return 0;
    }
    if (skipped > event.size()) return 0;
    event.remove_prefix(skipped);
  }
  return 0;
}

constexpr size_t length_bytes = 8;
constexpr size_t checksum_bytes = 4;
constexpr size_t framing = length_bytes + 2 * checksum_bytes;

/// The first record's event, or nothing when it is cut short or damaged.
std::optional<std::string_view> first_event(std::string_view records) {
  if (records.size() < framing) return std::nullopt;
  const auto length = raw_at<uint64_t>(records, 0);
  if (raw_at<uint32_t>(records, length_bytes) != checksum(records.substr(0, length_bytes)) || length > records.size() - framing) return std::nullopt;
  const std::string_view event = records.substr(length_bytes + checksum_bytes, length);
  if (raw_at<uint32_t>(records, length_bytes + checksum_bytes + length) != checksum(event)) return std::nullopt;
  return event;
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    if (entry.path().filename().string().starts_with(file_prefix)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string path_for(const std::string& folder, double wall_time) {
  const std::vector<std::string> paths = event_files(folder);
  return paths.empty() ? fmt::format("{}/{}{:010}.{}", folder, file_prefix, static_cast<int64_t>(wall_time), host_name()) : paths.back();
}

}  // namespace

EventLog::EventLog(const std::string& folder, double wall_time) : file_(path_for(folder, wall_time)) {
  if (file_.size() > 0) return;
  append_key(event_, event_wall_time, fixed64);
  append_raw(event_, wall_time);
  append_delimited(event_, event_file_version, file_version);
  write_event();
}

void EventLog::scalar(double wall_time, int64_t step, std::string_view tag, float value) {
  value_.clear();
  append_delimited(value_, value_tag, tag);
  append_key(value_, value_simple_value, fixed32);
  append_raw(value_, value);
  summary_.clear();
  append_delimited(summary_, summary_value, value_);
  event_.clear();
  append_key(event_, event_wall_time, fixed64);
  append_raw(event_, wall_time);
  append_key(event_, event_step, varint);
  append_varint(event_, static_cast<uint64_t>(step));
  append_delimited(event_, event_summary, summary_);
  write_event();
}

void EventLog::write_event() {
  record_.clear();
  append_raw(record_, static_cast<uint64_t>(event_.size()));
  append_raw(record_, checksum(record_));
  record_ += event_;
  append_raw(record_, checksum(event_));
  file_.append(record_);
}

int64_t cut_back_events(const std::string& folder, int64_t last) {
  int64_t removed = 0;
  for (const std::string& path : event_files(folder)) {
    const std::string before = file_contents(path);
    std::string after;
    std::string_view rest = before;
    while (const auto event = first_event(rest)) {
      const size_t record = event->size() + framing;
      if (step_of(*event) <= last) {
        after += rest.substr(0, record);
      } else {
        ++removed;
      }
      rest.remove_prefix(record);
    }
    if (after.size() != before.size()) replace_file(FileOperations::posix(), path, std::as_bytes(std::span(after)));
  }
  return removed;
}

}  // namespace lockstep
