#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

struct NamedTensor {
  std::string name;
  Tensor values;
};

/// Writes tensors in the format that the path's ending says: .h5 or .hdf5 (data sets `group`/<name>; names are paths, components encoded by the caller),
/// .npz, .npy (one tensor), .csv (rows by elements, titled name_0, name_1, ...). bfloat16 becomes float32. The file appears whole or not at all.
/// Throws Y41 for another ending.
void write_tensors(const std::string& path, const std::string& group, const std::vector<NamedTensor>& tensors);

/// A text file that appears whole or not at all. Throws W01.
void write_text_file(const std::string& path, const std::string& text);

/// A name as one component of an HDF5 path: '%' and '/' as %25 and %2F.
std::string path_component(std::string_view name);

}  // namespace lockstep
