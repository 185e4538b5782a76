#pragma once

#include "core/value/fields.h"
#include "core/value/value.h"

namespace lockstep {

/// Takes keys out of a job's tree that are known, but in another section, and `batch_size` wherever the job itself is described: Y10 for each.
void check_sections(Value& tree, const Value& schema, Problems& problems);

}  // namespace lockstep
