#include "io/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/fields.h"

namespace lockstep {

namespace {

struct Line {
  int64_t number = 0;  ///< from 1
  std::vector<std::string_view> fields;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const size_t first = text.find_first_not_of(blank);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(blank) + 1 - first);
}

std::string_view unquoted(std::string_view text) { return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text; }

std::vector<Line> lines_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (rest.empty()) continue;
    Line& line = lines.emplace_back();
    line.number = number;
    while (true) {
      const size_t comma = rest.find(',');
      line.fields.push_back(unquoted(trimmed(rest.substr(0, comma))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return lines;
}

template <class T>
std::optional<T> number_from(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// A single number makes it a line of values, so that no sample is taken for titles.
bool is_header(const Line& line) {
  return std::ranges::none_of(line.fields, [](std::string_view field) { return number_from<double>(field).has_value(); });
}

/// Which fields of a line make a row of the input.
std::vector<size_t> columns_for(const DataExpectation::Input& input, const std::vector<std::string_view>& titles, const std::string& place) {
  const auto column = [&](const std::string& title) { return static_cast<size_t>(std::ranges::find(titles, title) - titles.begin()); };
  if (const size_t alone = column(input.name); alone < titles.size()) return {alone};
  std::vector<size_t> columns;
  for (size_t next = column(input.name + "_0"); next < titles.size(); next = column(fmt::format("{}_{}", input.name, columns.size()))) columns.push_back(next);
  if (columns.empty()) throw Error("D12", place, fmt::format("no column for input '{0}': expected a title '{0}', or '{0}_0', '{0}_1', ...", input.name));
  return columns;
}

Shape row_for(const DataExpectation::Input& input, size_t columns, const std::string& place) {
  if (input.row.size() == 1 && input.row[0] == -1) return {static_cast<int64_t>(columns)};
  const bool open = std::ranges::any_of(input.row, [](int64_t size) { return size == -1; });
  if (open || elements_of(input.row) != static_cast<int64_t>(columns)) throw Error("D12", place, fmt::format("{} columns for input '{}', whose rows are {}", columns, input.name, text_of(input.row)));
  return input.row;
}

/// One field as a value of type T, or nothing when it is none.
template <class T>
std::optional<T> value_from(std::string_view field) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::optional<uint8_t> number = number_from<uint8_t>(field);
    return number && *number <= 1 ? std::optional(*number == 1) : std::nullopt;
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    const std::optional<float> number = number_from<float>(field);
    return number ? std::optional(T(*number)) : std::nullopt;
  } else if constexpr (std::is_integral_v<T>) {
    if (const std::optional<T> integer = number_from<T>(field)) return integer;
    // numpy.savetxt writes integers as 1.000000000000000000e+00.
    const std::optional<double> number = number_from<double>(field);
    constexpr double exact = 0x1p53;
    if (!number || *number != std::floor(*number) || std::abs(*number) > exact) return std::nullopt;
    return number_from<T>(fmt::format("{}", static_cast<int64_t>(*number)));
  } else {
    return number_from<T>(field);
  }
}

}  // namespace

std::vector<std::unique_ptr<RowArray>> open_csv(const File& file, const std::vector<DataExpectation::Input>& inputs) {
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  std::vector<Line> lines = lines_of(text);
  if (lines.empty()) throw Error("D01", file.path(), "has no rows");
  std::vector<std::string_view> titles;
  if (is_header(lines.front())) {
    titles = lines.front().fields;
    lines.erase(lines.begin());
  }
  if (inputs.size() > 1 && titles.empty()) throw Error("D12", file.path(), "needs a first line with titles, since the model has several inputs");
  if (lines.empty()) throw Error("D01", file.path(), "has no rows");
  const size_t width = titles.empty() ? lines.front().fields.size() : titles.size();

  Problems problems;
  for (const Line& line : lines) {
    if (line.fields.size() != width) problems.add({"D02", fmt::format("{}:{}", file.path(), line.number), fmt::format("{} fields, expected {}", line.fields.size(), width), {}});
  }
  problems.raise();

  std::vector<std::unique_ptr<RowArray>> arrays;
  for (const DataExpectation::Input& input : inputs) {
    std::vector<size_t> columns(width);
    for (size_t i = 0; i < width; ++i) columns[i] = i;
    if (inputs.size() > 1) columns = columns_for(input, titles, file.path());
    Shape shape = row_for(input, columns.size(), file.path());
    shape.insert(shape.begin(), static_cast<int64_t>(lines.size()));
    Tensor values({input.dtype, shape});
    visit_any(input.dtype, [&]<class T>(Tag<T>) {
      T* out = values.as<T>().data();
      for (const Line& line : lines) {
        for (const size_t column : columns) {
          const std::string_view field = line.fields[column];
          const std::optional<T> value = value_from<T>(field);
          if (!value) problems.add({"D03", fmt::format("{}:{}:{}", file.path(), line.number, column + 1), fmt::format("'{}' is {}", printable(field), is_floating(input.dtype) ? "not a number" : fmt::format("no {}, which input '{}' takes", name_of(input.dtype), input.name)), {}});
          *out++ = value.value_or(T{});
        }
      }
    });
    problems.raise();
    arrays.push_back(std::make_unique<MemoryArray>(fmt::format("{}: {}", file.path(), input.name), std::move(values)));
  }
  return arrays;
}

}  // namespace lockstep
