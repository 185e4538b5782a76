#include "core/communicator/copy.h"

#include <cstdint>
#include <cstring>

namespace lockstep {

namespace {

/// Bytes that one turn of the loop copies: a few vectors, held in registers.
constexpr size_t turn = 128;

[[gnu::always_inline]] inline void copy_turns(std::byte* to, const std::byte* from, size_t size) {
  for (size_t begin = 0; begin < size; begin += turn) {
    typedef uint64_t Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]];
    const Vector* source = reinterpret_cast<const Vector*>(from + begin);
    Vector* target = reinterpret_cast<Vector*>(to + begin);
    const Vector a = source[0];
    const Vector b = source[1];
    const Vector c = source[2];
    const Vector d = source[3];
    target[0] = a;
    target[1] = b;
    target[2] = c;
    target[3] = d;
    // Keeps the compiler from seeing a memcpy in this loop.
    asm volatile("" ::: "memory");
  }
}

void copy_plain(std::byte* to, const std::byte* from, size_t size) { copy_turns(to, from, size); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void copy_avx2(std::byte* to, const std::byte* from, size_t size) { copy_turns(to, from, size); }
#endif

using Copy = void (*)(std::byte* to, const std::byte* from, size_t size);

Copy best_copy() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return copy_avx2;
#endif
  return copy_plain;
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, size_t size) {
  static const Copy copy_whole_turns = best_copy();
  const size_t whole = size / turn * turn;
  copy_whole_turns(to, from, whole);
  if (whole < size) std::memcpy(to + whole, from + whole, size - whole);
}

}  // namespace lockstep
