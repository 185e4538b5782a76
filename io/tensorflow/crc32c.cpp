#include "io/tensorflow/crc32c.h"

#include <array>
#include <cstring>

namespace lockstep {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the effect of byte b with k more bytes behind it, so that eight bytes are taken at once.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xffu];
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  crc = ~crc;
  while (left >= 8) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xffu] ^ tables[6][(low >> 8) & 0xffu] ^ tables[5][(low >> 16) & 0xffu] ^ tables[4][low >> 24] ^ tables[3][high & 0xffu] ^
          tables[2][(high >> 8) & 0xffu] ^ tables[1][(high >> 16) & 0xffu] ^ tables[0][high >> 24];
    at += 8;
    left -= 8;
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<uint32_t>(*at)) & 0xffu];
  return ~crc;
}

}  // namespace lockstep
