#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/logs/append_file.h"
#include "io/logs/number_text.h"

namespace lockstep {

/// metrics.jsonl: one JSON object a line, with clock values and events. A line allocates nothing after the first ones.
class JsonLines {
 public:
  struct Member {
    std::string_view key;
    Cell value;  ///< `std::monostate`, NaN and infinities are null, because JSON has none of them
  };

  /// Goes on with the file where there is one.
  explicit JsonLines(const std::string& path) : file_(path) {}

  void append(std::span<const Member> members);
  void sync() { file_.sync(); }
  std::optional<std::string> failure() const { return file_.failure(); }

 private:
  AppendFile file_;
  std::string line_;
};

/// Removes the lines whose member `key` is above `last`, and one that was cut short; lines without the member stay. Returns how many whole lines went.
/// Throws W10, W30.
int64_t cut_back_json_lines(const std::string& path, std::string_view key, int64_t last);

}  // namespace lockstep
