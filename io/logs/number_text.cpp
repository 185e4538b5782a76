#include "io/logs/number_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace lockstep {

namespace {

template <class T>
void append_shortest(std::string& text, T value) {
  std::array<char, 64> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), result.ptr);
}

template <class T>
void append_floating(std::string& text, T value) {
  // The sign of a NaN depends on the processor.
  if (std::isnan(value)) {
    text += "nan";
  } else {
    append_shortest(text, value);
  }
}

}  // namespace

void append_number(std::string& text, int64_t value) { append_shortest(text, value); }
void append_number(std::string& text, float value) { append_floating(text, value); }
void append_number(std::string& text, double value) { append_floating(text, value); }

}  // namespace lockstep
