#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/json/json.h"

namespace lockstep {
namespace {

constexpr size_t deepest = 128;

/// Builds the tree from the parser's events. They carry no positions, so a cursor follows them through the text, which the parser has checked so far.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string name, std::string_view text, std::string_view code)
      : source_(std::make_shared<const SourceText>(SourceText{std::move(name), std::string(text)})), text_(source_->text), code_(code) {}

  Value take() { return std::move(root_); }

  bool null() { return scalar(Value()); }
  bool boolean(bool value) { return scalar(Value(value)); }
  bool number_integer(number_integer_t value) { return scalar(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) {
    return scalar(value <= static_cast<number_unsigned_t>(INT64_MAX) ? Value(static_cast<int64_t>(value)) : Value(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) { return scalar(Value(value)); }
  bool string(string_t& value) { return scalar(Value(std::move(value))); }
  bool binary(binary_t&) { return false; }  // not in text

  bool start_object(size_t) { return open(Value::map()); }
  bool start_array(size_t) { return open(Value::list()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& key) {
    Frame& frame = frames_.back();
    frame.key_place = next_token();
    if (!frame.keys.insert(key).second) fail_at(frame.key_place, code_, fmt::format("'{}' is set twice in one mapping", printable(key)));
    frame.key = std::move(key);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::json::exception& exception) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what": the place is told apart from it.
    const std::string whole = exception.what();
    size_t begin = whole.find("] ");
    begin = begin == std::string::npos ? 0 : begin + 2;
    if (whole.compare(begin, 11, "parse error") == 0) {
      const size_t colon = whole.find(": ", begin);
      if (colon != std::string::npos) begin = colon + 2;
    }
    // `byte` counts what was read: a token that is unexpected ends there, and begins after the last one that was not.
    size_t at = std::min(byte > 0 ? byte - 1 : 0, text_.size());
    if (whole.find("unexpected", begin) != std::string::npos) at = std::min(at, text_.find_first_not_of(" \t\r\n,:]}", cursor_));
    fail(at, whole.substr(begin));
  }

  [[noreturn]] void fail(size_t byte, std::string_view what) {
    fail_at(place_of(byte), code_, fmt::format("JSON error at byte {}: {}", byte, printable(what)));
  }

 private:
  struct Frame {
    Value value;
    Place place;
    std::unordered_set<std::string> keys = {};
    std::string key = {};
    Place key_place = {};
  };

  Place place_of(size_t byte) {
    for (; counted_ < byte; ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        line_begin_ = counted_ + 1;
      }
    }
    return {source_, line_, static_cast<int>(byte - line_begin_) + 1};
  }

  /// The place of the next token that is no punctuation but an opening bracket; the cursor ends behind it.
  Place next_token() {
    cursor_ = std::min(text_.find_first_not_of(" \t\r\n,:]}", cursor_), text_.size());
    const Place place = place_of(cursor_);
    if (cursor_ == text_.size()) return place;
    if (text_[cursor_] == '"') {
      for (++cursor_; cursor_ < text_.size() && text_[cursor_] != '"'; ++cursor_) {
        if (text_[cursor_] == '\\') ++cursor_;
      }
      ++cursor_;
    } else if (text_[cursor_] == '[' || text_[cursor_] == '{') {
      ++cursor_;
    } else {
      cursor_ = std::min(text_.find_first_of(" \t\r\n,:]}", cursor_), text_.size());
    }
    return place;
  }

  bool scalar(Value value) {
    value.with_place(next_token());
    attach(std::move(value));
    return true;
  }

  bool open(Value empty) {
    Place place = next_token();
    if (frames_.size() >= deepest) fail_at(place, code_, fmt::format("nested deeper than {} levels", deepest));
    frames_.push_back({std::move(empty), std::move(place)});
    return true;
  }

  bool close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    frame.value.with_place(std::move(frame.place));
    attach(std::move(frame.value));
    return true;
  }

  void attach(Value value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_list()) {
      frame.value.push_back(std::move(value));
    } else {
      value.with_key_place(std::move(frame.key_place));
      frame.value.as_map().emplace_back(std::move(frame.key), std::move(value));
    }
  }

  std::shared_ptr<const SourceText> source_;
  std::string_view text_;
  std::string code_;
  Value root_;
  std::vector<Frame> frames_;
  size_t cursor_ = 0;
  size_t counted_ = 0;
  size_t line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

Value read_json_text(std::string name, std::string_view text, std::string_view code) {
  Builder builder(std::move(name), text, code);
  // A byte order mark is no JSON (the parser would skip it and count from behind it).
  if (text.starts_with("\xef\xbb\xbf")) builder.fail(0, "begins with a byte order mark");
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace lockstep
