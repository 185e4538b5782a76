#include "io/logs/json_lines.h"

#include <cmath>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/value.h"
#include "io/json/json.h"

namespace lockstep {

namespace {

void append_text(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (code < 0x20) {
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", code);
    } else {
      line += c;
    }
  }
  line += '"';
}

void append_value(std::string& line, const Cell& cell) {
  std::visit(
      [&](auto value) {
        using T = decltype(value);
        if constexpr (std::is_same_v<T, std::string_view>) {
          append_text(line, value);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          append_number(line, value);
        } else if constexpr (std::is_same_v<T, std::monostate>) {
          line += "null";
        } else if (std::isfinite(value)) {
          append_number(line, value);
        } else {
          line += "null";
        }
      },
      cell);
}

}  // namespace

void JsonLines::append(std::span<const Member> members) {
  line_ = "{";
  for (const Member& member : members) {
    if (line_.size() > 1) line_ += ", ";
    append_text(line_, member.key);
    line_ += ": ";
    append_value(line_, member.value);
  }
  line_ += "}\n";
  file_.append(line_);
}

int64_t cut_back_json_lines(const std::string& path, std::string_view key, int64_t last) {
  return keep_lines(path, [&](std::string_view line) {
    try {
      const Value object = read_json_text(path, line, "W32");
      const Value* position = object.find(key);
      return position == nullptr || !position->is_integer() || position->as_integer() <= last;
    } catch (const Error&) {
      return false;
    }
  });
}

}  // namespace lockstep
