#include "core/error/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace lockstep {

std::string Problem::text() const {
  std::string result = fmt::format("error[{}] ", code);
  if (!place.empty()) result += place + ": ";
  result += message;
  if (!excerpt.empty()) result += "\n" + excerpt;
  return result;
}

Error::Error(std::string code, std::string place, std::string message)
    : Error(std::vector<Problem>{{std::move(code), std::move(place), std::move(message), {}}}) {}

Error::Error(std::vector<Problem> problems) : problems_(std::move(problems)) {
  for (const Problem& problem : problems_) {
    if (!text_.empty()) text_ += "\n";
    text_ += problem.text();
  }
}

ExitCode Error::exit_code() const { return problems_.empty() ? ExitCode::internal : exit_code_of(problems_.front().code); }

ExitCode exit_code_of(std::string_view code) {
  switch (code.empty() ? 'X' : code.front()) {
    case 'Y': return ExitCode::job;
    case 'H':
    case 'Z':
    case 'S':
    case 'D':
    case 'C':
    case 'M': return ExitCode::data;
    case 'L': return ExitCode::launch;
    case 'P': return ExitCode::peer;
    case 'N': return ExitCode::numeric;
    case 'W': return ExitCode::storage;
    default: return ExitCode::internal;
  }
}

namespace {

/// Edit distance with swaps of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 200) return {};
  const size_t allowed = word.size() < 2 ? 0 : std::max<size_t>(1, word.size() / 3);
  std::string best;
  std::pair<size_t, size_t> best_distance = {allowed + 1, 0};  // letters of either case alike, then as they are
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 200) continue;
    const std::pair<size_t, size_t> distance = {edit_distance(lower(word), lower(candidate)), edit_distance(word, candidate)};
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best_distance.first <= allowed ? best : "";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace lockstep
