#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "core/value/fields.h"
#include "io/yaml/scalar.h"
#include "io/yaml/source.h"
#include "io/yaml/yaml.h"

namespace lockstep {
namespace {

constexpr size_t deepest = 64;
constexpr size_t most_expanded = 100'000;
constexpr size_t most_bytes = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_quote(char c) { return c == '"' || c == '\''; }

size_t nodes_of(const Value& value) {
  size_t count = 1;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) count += nodes_of(item);
  } else if (value.is_map()) {
    for (const auto& member : value.as_map()) count += nodes_of(member.second);
  }
  return count;
}

size_t depth_of(const Value& value) {
  size_t depth = 0;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) depth = std::max(depth, depth_of(item));
  } else if (value.is_map()) {
    for (const auto& member : value.as_map()) depth = std::max(depth, depth_of(member.second));
  } else {
    return 0;
  }
  return depth + 1;
}

/// Byte after the closing quote of the string that opens at `begin`, or npos.
size_t end_of_quoted(std::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return i + 1;
      ++i;
    }
  }
  return std::string_view::npos;
}

/// Builds the tree from yaml-cpp's events and checks what yaml-cpp lets pass. The text is at hand, because events don't tell an anchor's name, a
/// string that is never closed, or a key without a colon.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const SourceText> source) : source_(source), text_(source->text), lines_(source) {}

  Value take() {
    problems_.raise();
    return std::move(root_);
  }

  /// What yaml-cpp could not read, in the words of the job's writer.
  [[noreturn]] void fail(const YAML::ParserException& exception) {
    if (exception.mark.is_null()) fail_whole(Place{source_, 0, 0}, "Y00", fmt::format("not valid YAML: {}", exception.msg));
    const size_t byte = std::min(static_cast<size_t>(exception.mark.pos), text_.size());
    size_t line = lines_.line_of(byte);
    const std::string_view row = lines_.text_of(line);
    if (exception.msg.find("anchor is not defined") != std::string::npos) {
      const std::string name = word_at(byte + 1);
      fail_whole(lines_.place_of(byte), "Y25", fmt::format("alias '*{}' has no anchor '&{}' before it", name, name));
    }
    const size_t tab = row.find_first_not_of(' ');
    if (tab != std::string_view::npos && row[tab] == '\t') fail_whole(lines_.place_of(lines_.begin_of(line) + tab), "Y04", "tab used for indentation; use spaces");
    if (exception.msg.find("EOF in scalar") != std::string::npos) {
      const size_t quote = unclosed_quote();
      if (quote != std::string_view::npos) fail_whole(lines_.place_of(quote), "Y06", never_closed(quote));
    }
    const bool flow_end = exception.msg.find("flow") != std::string::npos;
    if (flow_end) fail_bracket(byte);
    if (last_quoted_ && lines_.line_of(last_quoted_->first) < lines_.line_of(last_quoted_->second) && only_space(last_quoted_->second, byte)) {
      fail_whole(lines_.place_of(last_quoted_->first), "Y06", fmt::format("string opened at {} ends only at {}, with text after it; is its closing quote missing?", position(last_quoted_->first), position(last_quoted_->second - 1)));
    }
    while (true) {  // yaml-cpp notices the line after the one without a space
      const std::string_view candidate = lines_.text_of(line);
      size_t begin = candidate.find_first_not_of(' ');
      if (begin != std::string_view::npos && candidate.substr(begin).starts_with("- ")) begin = candidate.find_first_not_of(' ', begin + 2);
      if (begin != std::string_view::npos) {
        const std::string_view word = candidate.substr(begin, candidate.find(' ', begin) - begin);
        if (lacks_space_after_colon(word)) fail_whole(lines_.place_of(lines_.begin_of(line) + begin), "Y07", missing_space(word));
        if (line < lines_.line_of(byte)) break;
      }
      if (line == 0) break;
      --line;
    }
    fail_whole(lines_.place_of(byte), "Y00", fmt::format("not valid YAML: {}", explained(exception.msg)));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const auto byte = static_cast<size_t>(mark.pos);
    const Place place = lines_.place_of(byte);
    if (text_.substr(std::min(byte, text_.size())).starts_with("---")) fail_whole(place, "Y20", fmt::format("only one document is allowed; a second starts at line {}", place.line));
    fail_whole(place, "Y00", "this does not belong to the value above; is its indentation right?");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto byte = std::min(static_cast<size_t>(mark.pos), text_.size());
    Place place = lines_.place_of(byte);
    if (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.value.is_list() && frame.flow && byte < text_.size() && text_[byte] == ',') fail_whole(place, "Y00", "not valid YAML: nothing stands before this comma");
      if (frame.value.is_map()) {
        if (!frame.key) fail_whole(place, "Y00", "not valid YAML: a key is missing before ':'");
        if (colon_is_missing(frame, byte)) {
          const bool squeezed = lacks_space_after_colon(*frame.key);
          if (squeezed || !frame.flow) problem(frame.key_place, "Y07", squeezed ? missing_space(*frame.key) : fmt::format("missing ':' after '{}'", *frame.key));
        }
        const bool written = byte < text_.size() && (text_[byte] == '~' || text_[byte] == 'n' || text_[byte] == 'N') && place.line == frame.key_place.line;
        if (!written) place = frame.key_place;
      }
    }
    complete(Value(), std::move(place), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto byte = static_cast<size_t>(mark.pos);
    const Place place = lines_.place_of(byte);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail_whole(place, "Y24", fmt::format("anchor '{}' contains itself", word_at(byte + 1)));
    const Anchor& anchored = found->second;
    if (awaits_key()) {
      if (!anchored.value.is_string()) fail_whole(place, "Y00", "a key must be plain text");
      start_member(anchored.value.as_string(), place, byte, true);
      return;
    }
    spend(anchored.nodes, place);
    if (frames_.size() + anchored.depth > deepest) fail_whole(place, "Y22", too_deep());
    attach(anchored.value);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    const size_t byte = start_of_content(mark);
    const Place place = lines_.place_of(byte);
    last_scalar_ = byte;
    const char first = byte < text_.size() ? text_[byte] : '\0';
    const bool plain = !is_quote(first) && first != '|' && first != '>';
    if (is_quote(first)) {
      const size_t end = end_of_quoted(text_, byte);
      if (end == std::string_view::npos) fail_whole(place, "Y06", never_closed(byte));
      last_quoted_ = {byte, end};
    }
    check_indentation(byte);
    if (awaits_key()) {
      start_member(value, place, byte, plain);
      if (anchor != 0) anchors_[anchor] = {Value(value), 1, 0};
      return;
    }
    if (!plain) return complete(Value(value), place, anchor);
    if (in_block() && first_on_line(byte) && lacks_space_after_colon(value)) problem(place, "Y07", missing_space(value));
    PlainScalar scalar = interpret_plain(value);
    if (!scalar.code.empty()) {
      const std::string path = scalar.code == "Y14" ? current_path() : "";
      problem(place, scalar.code, path.empty() ? scalar.message : fmt::format("{}: {}", path, scalar.message));
    }
    complete(std::move(scalar.value), place, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    open(Value::list(), mark, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    open(Value::map(), mark, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    Frame& frame = frames_.back();
    for (const Value& source : frame.merged) {
      for (const auto& [key, value] : source.as_map()) {
        if (frame.lines.emplace(key, value.key_place().line).second) frame.value.as_map().emplace_back(key, value);
      }
    }
    close();
  }

 private:
  /// A list or a mapping whose end has not been seen.
  struct Frame {
    Value value;
    Place place;
    size_t byte = 0;
    bool flow = false;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key = std::nullopt;  ///< of the member whose value comes next
    Place key_place = {};
    size_t key_byte = 0;
    bool key_plain = false;
    bool repeated = false;                            ///< the key is set twice: its value is read and dropped
    std::unordered_map<std::string, int> lines = {};  ///< of the keys so far
    std::vector<Value> merged = {};                   ///< mappings under `<<`, first wins
  };
  struct Anchor {
    Value value;
    size_t nodes = 0;
    size_t depth = 0;
  };

  /// A problem after which nothing more can be read.
  [[noreturn]] void fail_whole(const Place& place, std::string code, std::string message) {
    problems_.add(problem_at(place, std::move(code), std::move(message)));
    problems_.raise();
    std::abort();  // raise() throws: a problem was just added
  }
  void problem(const Place& place, std::string code, std::string message) {
    problems_.add(problem_at(place, std::move(code), std::move(message)));
    if (problems_.full()) problems_.raise();
  }

  static std::string too_deep() { return fmt::format("nested deeper than {} levels", deepest); }
  static std::string missing_space(std::string_view word) { return fmt::format("missing space after ':' (found the text '{}')", printable(word.substr(0, 60))); }
  std::string never_closed(size_t quote) { return fmt::format("string opened at {} is never closed", position(quote)); }
  static std::string explained(const std::string& message) {
    if (message == "illegal map value") return "a ': ' where none can stand; quote a text that holds one";
    if (message.starts_with("end of map not found") || message.starts_with("end of sequence not found")) return "text after a value that is complete; is the indentation or a quote wrong?";
    return message;
  }

  std::string position(size_t byte) {
    const Place place = lines_.place_of(byte);
    return fmt::format("{}:{}", place.line, place.column);
  }
  bool only_space(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (!is_space(text_[i])) return false;
    }
    return true;
  }
  std::string word_at(size_t byte) const {
    size_t end = byte;
    while (end < text_.size() && !is_space(text_[end]) && std::strchr(",[]{}:", text_[end]) == nullptr) ++end;
    return std::string(text_.substr(std::min(byte, text_.size()), end - byte));
  }
  bool in_block() const { return frames_.empty() || !frames_.back().flow; }
  bool first_on_line(size_t byte) const {
    while (byte > 0 && (text_[byte - 1] == ' ' || text_[byte - 1] == '\t')) --byte;
    return byte == 0 || text_[byte - 1] == '\n';
  }
  void check_indentation(size_t byte) {
    if (!in_block() || !first_on_line(byte)) return;
    for (size_t i = byte; i > 0 && text_[i - 1] != '\n'; --i) {
      if (text_[i - 1] == '\t') return problem(lines_.place_of(i - 1), "Y04", "tab used for indentation; use spaces");
    }
  }
  bool awaits_key() const { return !frames_.empty() && frames_.back().value.is_map() && !frames_.back().key; }

  std::string current_path() const {
    std::string path;
    for (const Frame& frame : frames_) path = frame.value.is_list() ? join_path(path, frame.value.size()) : join_path(path, frame.key.value_or(""));
    return path;
  }

  bool colon_is_missing(const Frame& frame, size_t null_byte) const {
    if (!frame.key_plain) return false;
    if (!frame.flow) return null_byte == frame.key_byte;
    size_t i = frame.key_byte + frame.key->size();
    while (i < text_.size() && is_space(text_[i])) ++i;
    return i < text_.size() && text_[i] != ':';
  }

  /// Byte after anchors, spaces and comments; a tag on the way is a problem.
  size_t start_of_content(const YAML::Mark& mark) {
    size_t i = std::min(static_cast<size_t>(mark.pos), text_.size());
    bool properties = false;
    while (i < text_.size()) {
      if (text_[i] == '&' || text_[i] == '!') {
        const size_t begin = i;
        const char end_mark = text_.substr(i, 2) == "!<" ? '>' : '\0';
        while (i < text_.size() && !is_space(text_[i]) && (end_mark != '\0' || std::strchr(",[]{}", text_[i]) == nullptr)) ++i;
        if (text_[begin] == '!') problem(lines_.place_of(begin), "Y26", fmt::format("tags are not allowed: '{}'", printable(text_.substr(begin, i - begin))));
        properties = true;
      } else if (properties && is_space(text_[i])) {
        ++i;
      } else if (properties && text_[i] == '#') {
        i = std::min(text_.find('\n', i), text_.size());
      } else {
        break;
      }
    }
    return i;
  }

  void spend(size_t nodes, const Place& place) {
    expanded_ += nodes;
    if (expanded_ > most_expanded) fail_whole(place, "Y23", fmt::format("aliases expand to more than {} nodes", "100,000"));
  }

  void start_member(const std::string& key, const Place& place, size_t byte, bool plain) {
    Frame& frame = frames_.back();
    frame.key = key;
    frame.key_place = place;
    frame.key_byte = byte;
    frame.key_plain = plain;
    frame.repeated = false;
    if (plain && key == "<<") return;
    const auto [entry, is_new] = frame.lines.emplace(key, place.line);
    if (is_new) return;
    frame.repeated = true;
    problem(place, "Y08", fmt::format("'{}' is set twice (lines {} and {})", printable(key), entry->second, place.line));
  }

  void open(Value empty, const YAML::Mark& mark, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    const size_t byte = start_of_content(mark);
    const Place place = lines_.place_of(byte);
    if (awaits_key()) {
      // yaml-cpp takes what stands behind a bracket that is never closed for a key.
      if (!open_brackets(text_.size()).empty()) fail_bracket(text_.size());
      fail_whole(place, "Y00", "a key must be plain text");
    }
    if (frames_.size() >= deepest) fail_whole(place, "Y22", too_deep());
    if (style == YAML::EmitterStyle::Block) check_indentation(byte);
    frames_.push_back({std::move(empty), place, byte, style == YAML::EmitterStyle::Flow, anchor});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    complete(std::move(frame.value), std::move(frame.place), frame.anchor);
  }

  void complete(Value value, Place place, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Anchor anchored{value, nodes_of(value), depth_of(value)};
      anchored.value.with_place(place);
      spend(anchored.nodes, place);
      anchors_[anchor] = std::move(anchored);
    }
    value.with_place(std::move(place));
    attach(std::move(value));
  }

  void attach(Value value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_list()) {
      frame.value.push_back(std::move(value));
      return;
    }
    const std::string key = std::move(*frame.key);
    frame.key.reset();
    if (frame.repeated) return;
    if (frame.key_plain && key == "<<") return merge(frame, std::move(value));
    value.with_key_place(frame.key_place);
    frame.value.as_map().emplace_back(key, std::move(value));
  }

  void merge(Frame& frame, Value value) {
    const auto take = [&](const Value& source) {
      if (source.is_map()) {
        frame.merged.push_back(source);
      } else {
        problem(frame.key_place, "Y27", fmt::format("'<<' takes a mapping or a list of mappings, found {}", source.described()));
      }
    };
    if (!value.is_list()) return take(value);
    for (const Value& source : value.as_list()) take(source);
  }

  /// Calls `visit` for each byte of [begin, end) that is in no comment and in no string; for a string's opening quote with the byte behind its end.
  template <class Visit>
  void scan(size_t begin, size_t end, const Visit& visit) const {
    for (size_t i = begin; i < end;) {
      const char c = text_[i];
      if (c == '#' && (i == 0 || is_space(text_[i - 1]))) {
        i = std::min(text_.find('\n', i), text_.size());
        continue;
      }
      const bool starts_token = i == 0 || is_space(text_[i - 1]) || std::strchr("[{,:", text_[i - 1]) != nullptr;
      const size_t next = is_quote(c) && starts_token ? end_of_quoted(text_, i) : i + 1;
      visit(i, next);
      i = next;
    }
  }

  size_t unclosed_quote() const {
    size_t found = std::string_view::npos;
    scan(last_scalar_, text_.size(), [&](size_t i, size_t next) {
      if (next == std::string_view::npos) found = i;
    });
    return found;
  }

  /// Where the brackets are that are open at `end`, from the outermost list or mapping in brackets on.
  std::vector<size_t> open_brackets(size_t end) const {
    size_t begin = 0;
    for (const Frame& frame : frames_) {
      begin = frame.byte;
      if (frame.flow) break;
    }
    std::vector<size_t> open;
    scan(begin, end, [&](size_t i, size_t) {
      if (text_[i] == '[' || text_[i] == '{') open.push_back(i);
      if ((text_[i] == ']' || text_[i] == '}') && !open.empty()) open.pop_back();
    });
    return open;
  }

  /// yaml-cpp missed a closing bracket, or met a wrong one, at `end`: tells the innermost one open there.
  [[noreturn]] void fail_bracket(size_t end) {
    const std::vector<size_t> open = open_brackets(end);
    const char found = end < text_.size() ? text_[end] : '\0';
    const bool wrong_end = found == ']' || found == '}';
    if (open.empty()) fail_whole(lines_.place_of(end), "Y05", wrong_end ? fmt::format("'{}' closes nothing", found) : "a bracket is never closed");
    const std::string opened = fmt::format("'{}' opened at {}", text_[open.back()], position(open.back()));
    if (wrong_end) fail_whole(lines_.place_of(end), "Y05", fmt::format("{} is never closed; found '{}'", opened, found));
    fail_whole(lines_.place_of(open.back()), "Y05", opened + " is never closed");
  }

  std::shared_ptr<const SourceText> source_;
  std::string_view text_;
  Lines lines_;
  Problems problems_;
  Value root_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Anchor> anchors_;
  std::optional<std::pair<size_t, size_t>> last_quoted_;
  size_t last_scalar_ = 0;
  size_t expanded_ = 0;
  int documents_ = 0;
};

std::string size_text(uintmax_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / static_cast<double>(most_bytes);
  return fmt::format("{:.{}f} MiB", mebibytes, mebibytes < 10 ? 1 : 0);
}

[[noreturn]] void too_large(const std::string& name, const std::string& found) {
  throw Error("Y28", name, fmt::format("job file is {}; the limit is 1 MiB", found));
}

std::string read_bytes(const std::string& path) {
  const auto cannot = [&](const std::string& why) { throw Error("Y01", "", fmt::format("cannot read job file '{}': {}", printable(path), why)); };
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) cannot("is a directory");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot(std::strerror(errno != 0 ? errno : EIO));
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) cannot(std::strerror(errno != 0 ? errno : EIO));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > most_bytes) {
    const uintmax_t size = std::filesystem::file_size(path, failure);
    too_large(path, failure ? "larger than 1 MiB" : size_text(size));
  }
  return text;
}

}  // namespace

Value read_yaml_text(std::string name, std::string text) {
  if (text.size() > most_bytes) too_large(name, size_text(text.size()));
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  const auto source = std::make_shared<const SourceText>(SourceText{std::move(name), std::move(text)});
  check_characters(*source);
  std::istringstream stream(source->text);
  YAML::Parser parser(stream);
  Builder builder(source);
  try {
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& exception) {
    builder.fail(exception);
  }
  return builder.take();
}

Value read_yaml_file(const std::string& path) {
  Value value = read_yaml_text(path, read_bytes(path));
  if (value.is_null()) throw Error("Y02", path, "job file is empty; 'lockstep init' writes a working one");
  if (!value.is_map()) fail_at(value.place(), "Y03", fmt::format("top level must be a mapping, found {}", value.described()));
  return value;
}

}  // namespace lockstep
