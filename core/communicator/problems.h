#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error/error.h"

namespace lockstep {

/// Problems as bytes, to cross between ranks: each text is its length in decimal digits, ':' and itself. Texts are cut so that the whole stays
/// within `limit` bytes; problems that no longer fit are left out.
std::string pack(const std::vector<Problem>& problems, size_t limit = static_cast<size_t>(-1));
/// The reverse. Bytes that pack() did not make give one X01.
std::vector<Problem> unpack(std::string_view bytes);

/// The problems of the exception in flight: an Error's own, or X01 with the message of another kind. Call inside a catch clause.
std::vector<Problem> current_problems();

}  // namespace lockstep
