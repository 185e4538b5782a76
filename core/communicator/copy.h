#pragma once

#include <cstddef>

namespace lockstep {

/// memcpy for memory that another processor has just written or will read next. glibc's uses `rep movsb`, which on Zen 3 and 4 drops to a fifth of its
/// speed when source and target lie alike within a page, and writes around the cache when the size is large.
void copy_bytes(std::byte* to, const std::byte* from, size_t size);

}  // namespace lockstep
