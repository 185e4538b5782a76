#pragma once

#include <string>
#include <vector>

#include "core/trainer/row_source.h"
#include "io/data/data.h"

namespace lockstep {

/// A column that a description asks for.
struct ColumnRequest {
  RowSource::Role role = RowSource::Role::input;
  size_t index = 0;   ///< of the model's input or output
  std::string name;   ///< its name; empty for a weight of every output
  std::string path;   ///< "data.train.inputs.image"
  Value description;  ///< where its values come from
};

/// The columns of a description in the model's order. Bare values, lists and mappings are told apart; every input must be there.
/// Throws all that is wrong: Y09 unknown name, Y11 missing input, Y12 a bare value where there are several, Y13 a list that is too long.
std::vector<ColumnRequest> requests_of(const DataDescription& data, const Place& place, const std::string& path, const DataExpectation& model);

/// The files that a text or a list of texts names, globs expanded in the order of names. A relative path begins at the folder of the file in which it is
/// written, or at `folder` where that is given. Throws D01 for a glob without a match, Y12 for anything but text.
std::vector<std::string> files_named(const Value& value, const std::string& path, const std::string& folder);

}  // namespace lockstep
