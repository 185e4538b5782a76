#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep {

/// A value of a log: nothing, a count, a loss or metric (float32, as the training has it), a clock value, a text.
using Cell = std::variant<std::monostate, int64_t, float, double, std::string_view>;

/// The shortest text that reads back as the same number of the same type: "0.1", "1e-05", "nan", "inf", "-inf". The same on every machine.
void append_number(std::string& text, int64_t value);
void append_number(std::string& text, float value);
void append_number(std::string& text, double value);

}  // namespace lockstep
