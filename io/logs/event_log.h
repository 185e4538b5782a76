#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/logs/append_file.h"

namespace lockstep {

/// TensorBoard's event file, `events.out.tfevents.<seconds>.<host>`: scalars by step. A scalar allocates nothing after the first ones.
///
///   record    uint64 length | masked CRC-32C of the length | bytes | masked CRC-32C of the bytes, little-endian
///   bytes     Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary {1: Value {1: string tag, 2: float simple_value}}}
///
/// Source: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
class EventLog {
 public:
  /// Goes on with the folder's newest event file, or begins one. `wall_time` is in seconds since 1970.
  EventLog(const std::string& folder, double wall_time);

  void scalar(double wall_time, int64_t step, std::string_view tag, float value);
  const std::string& path() const { return file_.path(); }
  void sync() { file_.sync(); }
  std::optional<std::string> failure() const { return file_.failure(); }

 private:
  void write_event();

  AppendFile file_;
  std::string event_;
  std::string summary_;
  std::string value_;
  std::string record_;
};

/// Removes the events of steps above `last` from every event file of a folder, and a record that was cut short or is damaged with all behind it.
/// Returns how many whole events went. Throws W10, W30.
int64_t cut_back_events(const std::string& folder, int64_t last);

}  // namespace lockstep
