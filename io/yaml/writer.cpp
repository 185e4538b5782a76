#include <algorithm>

#include <fmt/format.h>

#include "core/value/fields.h"
#include "io/yaml/scalar.h"
#include "io/yaml/yaml.h"

namespace lockstep {
namespace {

constexpr size_t longest_flow = 100;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

/// Whether the text can stand without quotes, in a list or mapping in brackets too.
bool is_plain(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`=").find(text.front()) != std::string_view::npos) return false;
  if (text.find_first_of(",[]{}") != std::string_view::npos || text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return false;
  if (text.starts_with("...") || text.starts_with("<<") || lacks_space_after_colon(text)) return false;
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string text_of(const std::string& text) {
  return is_plain(text) && interpret_plain(text).value.is_string() ? text : quoted(text);
}

std::string key_text(const std::string& key) {
  const bool null_like = key == "~" || key == "null" || key == "Null" || key == "NULL";
  return is_plain(key) && !null_like ? key : quoted(key);
}

std::string real_of(double number) {
  const std::string text = real_text(number);
  if (text == "nan" || text == "-nan") return ".nan";
  if (text == "inf") return ".inf";
  return text == "-inf" ? "-.inf" : text;
}

/// One line for a scalar, an empty mapping, a list of such lists; else empty.
std::string on_one_line(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::boolean:
      return value.as_boolean() ? "true" : "false";
    case Value::Kind::integer:
      return fmt::format("{}", value.as_integer());
    case Value::Kind::real:
      return real_of(value.as_number());
    case Value::Kind::string:
      return text_of(value.as_string());
    case Value::Kind::map:
      return value.size() == 0 ? "{}" : "";
    case Value::Kind::list:
      break;
  }
  std::string line = "[";
  for (const Value& item : value.as_list()) {
    const std::string text = on_one_line(item);
    if (text.empty() || line.size() + text.size() > longest_flow) return {};
    if (line.size() > 1) line += ", ";
    line += text;
  }
  return line + "]";
}

class Writer {
 public:
  explicit Writer(const YamlComments& comments) : comments_(comments) {}

  std::string take() { return std::move(out_); }

  /// `value` from the start of a line, or after "- " where `first` is the indentation that is already there.
  void write_block(const Value& value, const std::string& path, size_t indent, bool started) {
    if (value.is_map()) {
      for (const auto& [key, member] : value.as_map()) {
        const std::string member_path = join_path(path, key);
        const std::string above = said(comments_.above, member_path, member);
        // A comment can't stand between "- " and the key; the list's own comment says enough there.
        if (!started && !above.empty()) write_comment(above, indent);
        if (!started) out_ += std::string(indent, ' ');
        started = false;
        out_ += key_text(key) + ":";
        write_member(member, member_path, indent + 2);
      }
      return;
    }
    for (size_t i = 0; i < value.size(); ++i) {
      if (!started) out_ += std::string(indent, ' ');
      started = false;
      out_ += "-";
      const Value& item = value.as_list()[i];
      if (item.is_map() && item.size() > 0) {
        out_ += " ";
        write_block(item, join_path(path, i), indent + 2, true);
      } else {
        write_member(item, join_path(path, i), indent + 2);
      }
    }
  }

  /// After "key:" or "-".
  void write_member(const Value& value, const std::string& path, size_t indent) {
    const std::string line = on_one_line(value);
    if (line.empty()) {
      out_ += "\n";
      write_block(value, path, indent, false);
      return;
    }
    out_ += " " + line;
    const std::string beside = said(comments_.beside, path, value);
    if (!beside.empty()) out_ += "  # " + beside;
    out_ += "\n";
  }

 private:
  static std::string said(const std::function<std::string(const std::string&, const Value&)>& comment, const std::string& path, const Value& value) {
    return comment ? comment(path, value) : std::string();
  }
  void write_comment(const std::string& text, size_t indent) {
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      out_ += fmt::format("{}# {}\n", std::string(indent, ' '), text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  const YamlComments& comments_;
  std::string out_;
};

}  // namespace

std::string write_yaml(const Value& value, const YamlComments& comments) {
  const std::string line = on_one_line(value);
  if (!line.empty()) return line + "\n";
  Writer writer(comments);
  writer.write_block(value, "", 0, false);
  return writer.take();
}

}  // namespace lockstep
