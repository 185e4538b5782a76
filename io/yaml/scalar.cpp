#include "io/yaml/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace lockstep {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

template <size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// [0-9]+ ( . [0-9]* )? or . [0-9]+, then ( [eE] [-+]? [0-9]+ )?
bool is_real(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - begin;
  };
  const size_t whole = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

PlainScalar refuse(std::string code, std::string message) { return {Value(), std::move(code), std::move(message)}; }

/// 0x10, 0o10, 0b10: what the digits after the prefix come to, in decimal.
PlainScalar refuse_prefixed(std::string_view sign, std::string_view digits, int base, std::string_view kind) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (end != digits.data() + digits.size() || digits.empty()) return {};
  const std::string way_out = failure == std::errc() ? fmt::format("write {}{}", sign == "-" ? "-" : "", number) : "write it in decimal";
  return refuse("Y15", fmt::format("{}; {} numbers are not taken (quote it if text is meant)", way_out, kind));
}

std::string without_zeros(std::string_view digits) {
  const size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  return std::string(digits.substr(first));
}

PlainScalar interpret_integer(std::string_view sign, std::string_view digits) {
  const std::string minus = sign == "-" ? "-" : "";
  if (digits.size() > 1 && digits.front() == '0') {
    const std::string decimal = without_zeros(digits);
    int64_t octal = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), octal, 8);
    const bool is_octal = failure == std::errc() && end == digits.data() + digits.size();
    return refuse("Y15", fmt::format("write {}{}; a leading zero means octal{} in YAML 1.1 (quote it if text is meant)", minus, decimal, is_octal ? fmt::format(" ({}{})", minus, octal) : ""));
  }
  int64_t number = 0;
  const std::string text = minus + std::string(digits);
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return refuse("Y18", fmt::format("{} does not fit in 64 bits (max 9223372036854775807)", text));
  }
  return {Value(number), {}, {}};
}

}  // namespace

PlainScalar interpret_plain(const std::string& text) {
  static constexpr std::array<std::string_view, 5> nulls = {"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 8> yes = {"yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE"};
  static constexpr std::array<std::string_view, 8> no = {"no", "No", "NO", "off", "Off", "OFF", "False", "FALSE"};
  static constexpr std::array<std::string_view, 6> not_finite = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  if (is_one_of(text, nulls)) return {};
  if (text == "true") return {Value(true), {}, {}};
  if (text == "false") return {Value(false), {}, {}};
  const bool means_yes = is_one_of(text, yes);
  if (means_yes || is_one_of(text, no)) {
    return refuse("Y16", fmt::format("write true or false; '{}' means {} in YAML 1.1 (quote it if text is meant)", text, means_yes));
  }
  const bool is_signed = text.front() == '-' || text.front() == '+';
  const std::string_view sign = std::string_view(text).substr(0, is_signed ? 1 : 0);
  const std::string_view rest = std::string_view(text).substr(sign.size());
  if (is_one_of(rest, not_finite)) return refuse("Y14", "must be a finite number");
  if (rest.empty() || (!is_digit(rest.front()) && rest.front() != '.')) return {Value(text), {}, {}};
  if (all_digits(rest)) return interpret_integer(sign, rest);
  if (is_real(rest)) {
    const std::string number_text = (sign == "-" ? "-" : "") + std::string(rest);
    double number = 0;
    if (std::from_chars(number_text.data(), number_text.data() + number_text.size(), number).ec != std::errc()) {
      return refuse("Y14", fmt::format("must be a finite number; {} does not fit in 64 bits", text));
    }
    return {Value(number), {}, {}};
  }
  if (rest.size() > 2 && rest.front() == '0') {
    PlainScalar refused;
    if (rest[1] == 'x' || rest[1] == 'X') refused = refuse_prefixed(sign, rest.substr(2), 16, "hexadecimal");
    if (rest[1] == 'o') refused = refuse_prefixed(sign, rest.substr(2), 8, "octal");
    if (rest[1] == 'b') refused = refuse_prefixed(sign, rest.substr(2), 2, "binary");
    if (!refused.code.empty()) return refused;
  }
  std::string joined(rest);
  std::erase(joined, '_');
  if (joined.size() < rest.size() && rest.back() != '_' && rest.front() != '_' && all_digits(joined)) {
    return refuse("Y17", fmt::format("expected an integer; write {}{} (quote it if text is meant)", sign, without_zeros(joined)));
  }
  return {Value(text), {}, {}};
}

bool lacks_space_after_colon(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const char next = text[colon + 1];
  return !is_digit(text.front()) && std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), is_word) && next != '/' && next != '\\' && next != ' ' && next != ':';
}

}  // namespace lockstep
