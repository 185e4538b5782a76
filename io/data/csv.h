#pragma once

#include <memory>
#include <vector>

#include "io/data/data.h"
#include "io/data/row_array.h"

namespace lockstep {

/// The inputs of a model from a file of numbers with commas between them; blank lines don't count. The first line may hold titles. A model with one input
/// takes all columns in order; for several, the titles say: NAME, or NAME_0, NAME_1, ... for an input of several elements, which are in row-major order.
/// Arrays have the inputs' rows and dtypes, and come in their order.
/// Throws D02 for a line of another length, D03 for what is no number of the input's dtype, D12 for too few or too many columns, each with line and column.
std::vector<std::unique_ptr<RowArray>> open_csv(const File& file, const std::vector<DataExpectation::Input>& inputs);

}  // namespace lockstep
