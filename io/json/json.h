#pragma once

#include <string>
#include <string_view>

#include "core/value/value.h"

namespace lockstep {

/// Strict JSON (RFC 8259): one value, at most 128 levels, a mapping's keys once, no NaN or Infinity, UTF-8. Integers beyond 64 bits become reals.
/// Every value and key has its place (lines and columns in bytes) under `name`. What is wrong is thrown with `code`: "H27", "Z13".
Value read_json_text(std::string name, std::string_view text, std::string_view code);

/// The same bytes for the same tree, as Python's json.dumps writes them: ", " and ": ", only ASCII, members in order; `indent` spaces a level where it
/// is not negative. Reals are the shortest that read back exactly and keep a ".0" or an exponent; those that are not finite are NaN, Infinity and
/// -Infinity as in Python, which no strict reader takes.
std::string write_json(const Value& value, int indent = -1);

}  // namespace lockstep
