#include "io/yaml/source.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the well-formed UTF-8 character at `text`, or 0. Unicode 15, table 3-7.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  const auto tail = [&](size_t from, size_t size) {
    for (size_t i = from; i < size; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return size_t{0};
    }
    return size;
  };
  if (first >= 0xc2 && first <= 0xdf) return tail(1, 2);
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high ? tail(2, 3) : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high ? tail(2, 4) : 0;
  }
  return 0;
}

}  // namespace

Lines::Lines(std::shared_ptr<const SourceText> source) : source_(std::move(source)), begins_{0} {
  const std::string& text = source_->text;
  for (size_t i = text.find('\n'); i != std::string::npos; i = text.find('\n', i + 1)) begins_.push_back(i + 1);
}

size_t Lines::line_of(size_t byte) const {
  return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), byte) - begins_.begin()) - 1;
}

std::string_view Lines::text_of(size_t line) const {
  const std::string_view text = source_->text;
  std::string_view row = text.substr(begins_[line], text.find('\n', begins_[line]) - begins_[line]);
  if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
  return row;
}

Place Lines::place_of(size_t byte) {
  byte = std::min(byte, source_->text.size());
  const size_t line = line_of(byte);
  if (line != last_line_ || byte < last_byte_) {
    last_byte_ = begins_[line];
    last_line_ = line;
    last_column_ = 1;
  }
  for (; last_byte_ < byte; ++last_byte_) {
    if (!continues(source_->text[last_byte_])) ++last_column_;
  }
  return {source_, static_cast<int>(line) + 1, last_column_};
}

void check_characters(const SourceText& source) {
  const std::string_view text = source.text;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) throw Error("Y21", source.name, "the file is UTF-16; save it as UTF-8");
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t size = character_size(text.substr(i));
    const bool allowed_control = byte == '\t' || byte == '\n' || (byte == '\r' && text.substr(i, 2) == "\r\n");
    const bool control = (byte < 0x20 && !allowed_control) || byte == 0x7f;
    const bool late_control = size == 2 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;  // U+0080 to U+009F
    if (size == 0 || control || late_control) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
      const std::string what = size == 0      ? fmt::format("invalid UTF-8 byte 0x{:02x}", byte)
                               : byte == 0    ? std::string("NUL character")
                               : late_control ? fmt::format("control character 0x{:02x}", static_cast<unsigned char>(text[i + 1]))
                                              : fmt::format("control character 0x{:02x}", byte);
      throw Error("Y21", fmt::format("{}:{}", source.name, line), fmt::format("{} at byte {}; only UTF-8 text is taken", what, i));
    }
    i += size;
  }
}

}  // namespace lockstep
