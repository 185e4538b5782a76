#pragma once

#include <string_view>

#include "core/program/program.h"
#include "core/trainer/mirrored_state.h"
#include "core/trainer/row_source.h"

namespace lockstep {

/// Lets a replica's part read each variable of its graph where the state keeps it. The state must outlive the part.
void bind_variables(ReplicaPart& part, MirroredState& state);

/// The column with this role and name; D17 when the data has none.
size_t column_of(const RowSource& source, RowSource::Role role, std::string_view name);

}  // namespace lockstep
