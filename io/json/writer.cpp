#include <cmath>

#include <fmt/format.h>

#include "io/json/json.h"

namespace lockstep {
namespace {

/// The character at `i`, which moves behind it; a byte that starts no UTF-8 character is U+FFFD.
uint32_t next_character(std::string_view text, size_t& i) {
  constexpr uint32_t replacement = 0xfffd;
  const auto first = static_cast<unsigned char>(text[i++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2
                                                     : 1;
  if (first < 0xc2 || first > 0xf4) return replacement;
  uint32_t character = first & (0x3fU >> more);
  size_t end = i;
  for (int k = 0; k < more; ++k, ++end) {
    if (end >= text.size() || (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) return replacement;
    character = (character << 6) | (static_cast<unsigned char>(text[end]) & 0x3fU);
  }
  constexpr uint32_t smallest[] = {0x80, 0x800, 0x10000};
  if (character < smallest[more - 1] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return replacement;
  i = end;
  return character;
}

void write_text(std::string_view text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_character(text, i);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c >= 0x20 && c < 0x7f) {
          out += static_cast<char>(c);
        } else if (c < 0x10000) {
          out += fmt::format("\\u{:04x}", c);
        } else {
          out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
        }
    }
  }
  out += '"';
}

void write(const Value& value, int indent, size_t level, std::string& out) {
  const auto new_line = [&](size_t at) {
    if (indent >= 0) out += "\n" + std::string(at * static_cast<size_t>(indent), ' ');
  };
  const auto separate = [&](bool first) {
    if (!first) out += indent >= 0 ? "," : ", ";
    new_line(level + 1);
  };
  switch (value.kind()) {
    case Value::Kind::null:
      out += "null";
      break;
    case Value::Kind::boolean:
      out += value.as_boolean() ? "true" : "false";
      break;
    case Value::Kind::integer:
      out += fmt::format("{}", value.as_integer());
      break;
    case Value::Kind::real: {
      const double number = value.as_number();
      out += std::isfinite(number) ? real_text(number) : std::isnan(number) ? "NaN"
                                                     : number > 0           ? "Infinity"
                                                                            : "-Infinity";
      break;
    }
    case Value::Kind::string:
      write_text(value.as_string(), out);
      break;
    case Value::Kind::list: {
      out += '[';
      bool first = true;
      for (const Value& item : value.as_list()) {
        separate(first);
        first = false;
        write(item, indent, level + 1, out);
      }
      if (!first) new_line(level);
      out += ']';
      break;
    }
    case Value::Kind::map: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : value.as_map()) {
        separate(first);
        first = false;
        write_text(key, out);
        out += ": ";
        write(member, indent, level + 1, out);
      }
      if (!first) new_line(level);
      out += '}';
      break;
    }
  }
}

}  // namespace

std::string write_json(const Value& value, int indent) {
  std::string out;
  write(value, indent, 0, out);
  return out;
}

}  // namespace lockstep
