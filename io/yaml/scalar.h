#pragma once

#include <string>
#include <string_view>

#include "core/value/value.h"

namespace lockstep {

/// What a plain scalar stands for in YAML 1.2's core schema, or the code and message of why it is refused.
struct PlainScalar {
  Value value;
  std::string code;
  std::string message;
};
PlainScalar interpret_plain(const std::string& text);

/// "lr:0.1": a key and its value without the space between them. Text with a slash after the colon is a path or an address.
bool lacks_space_after_colon(std::string_view text);

}  // namespace lockstep
