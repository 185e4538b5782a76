#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of `bytes`; `crc` is that of the bytes before, 0 for none.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// As TensorFlow stores a checksum: rotated and offset, so that a checksum over bytes that hold checksums is a good one.
inline uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace lockstep
