#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Where the values of a .npy file lie and how. Errors of all readers here are Error D08, with file (and member) as place: no .npy file, objects,
/// strings, structures or complex numbers as elements, a header that says something else than numpy's, fewer values than the shape needs.
///   bytes    content                       (source: numpy.lib.format)
///   6        "\x93NUMPY"
///   2        version: 1 0, 2 0 or 3 0
///   2 or 4   length of the header; 2 bytes in version 1
///   ...      {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  padded with spaces so that the values are aligned to 64 bytes
///   ...      values
struct NpyHeader {
  TensorType type;
  bool fortran_order = false;  ///< first axis fastest
  bool big_endian = false;
  uint64_t values_at = 0;  ///< bytes before the values
};

/// Gives the next bytes of a file, all that are asked for, or throws.
using NextBytes = std::function<void(std::span<std::byte>)>;

/// From the start of a file or archive member of `size` bytes; throws too when the values don't fit in it.
NpyHeader read_npy_header(const NextBytes& next, uint64_t size, const std::string& place);
/// The values that follow the header, in row-major order and the machine's byte order.
Tensor read_npy_values(const NextBytes& next, const NpyHeader& header);
/// A file that can't be opened: Error D01.
Tensor read_npy(const std::string& path);

/// As numpy.save writes it, byte for byte; bfloat16, which numpy doesn't have, as float32. Throws W01 when the file can't be written.
void write_npy(const std::string& path, const Tensor& tensor);
std::vector<std::byte> npy_bytes(const Tensor& tensor);

}  // namespace lockstep
