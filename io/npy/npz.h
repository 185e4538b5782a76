#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// The names of the arrays in a .npz archive (a zip of .npy files), without ".npy", in the archive's order.
/// Throws D01 when the file can't be opened, D08 when it is no archive.
std::vector<std::string> npz_names(const std::string& path);

/// One array. Throws D08 when the archive hasn't it (listing what it has) or it is no sound .npy file, D09 when it would expand out of all proportion.
Tensor read_npz(const std::string& path, const std::string& name);

/// Not compressed, as numpy.savez; the bytes are a function of names and values. bfloat16 as float32. Throws W01 when the file can't be written.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace lockstep
