#include "io/logs/csv_log.h"

#include <charconv>
#include <type_traits>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

void append_text(std::string& line, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void append_cell(std::string& line, const Cell& cell) {
  std::visit(
      [&](auto value) {
        using T = decltype(value);
        if constexpr (std::is_same_v<T, std::string_view>) {
          append_text(line, value);
        } else if constexpr (!std::is_same_v<T, std::monostate>) {
          append_number(line, value);
        }
      },
      cell);
}

std::string header_of(const std::vector<std::string>& columns) {
  std::string line;
  for (const std::string& column : columns) {
    if (!line.empty()) line += ',';
    append_text(line, column);
  }
  return line + '\n';
}

}  // namespace

CsvLog::CsvLog(const std::string& path, const std::vector<std::string>& columns) : file_(path), columns_(columns.size()) {
  const std::string header = header_of(columns);
  if (file_.size() == 0) {
    file_.append(header);
    return;
  }
  const std::string contents = file_contents(path);
  if (contents.starts_with(header)) return;
  const std::string found = contents.substr(0, contents.find('\n'));
  throw Error("W31", path, fmt::format("has the columns '{}', this run logs '{}'; move the file away or choose another run_folder", printable(found), header.substr(0, header.size() - 1)));
}

void CsvLog::append(std::span<const Cell> row) {
  if (row.size() != columns_) throw Error("X03", file_.path(), fmt::format("a row of {} cells for {} columns", row.size(), columns_));
  line_.clear();
  for (const Cell& cell : row) {
    if (&cell != row.data()) line_ += ',';
    append_cell(line_, cell);
  }
  line_ += '\n';
  file_.append(line_);
}

int64_t cut_back_csv(const std::string& path, int64_t last) {
  bool header = true;
  return keep_lines(path, [&](std::string_view line) {
    if (header) {
      header = false;
      return true;
    }
    int64_t key = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), key);
    return failure == std::errc() && (end == line.data() + line.size() || *end == ',') && key <= last;
  });
}

}  // namespace lockstep
