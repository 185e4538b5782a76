#pragma once

#include "core/graph/graph.h"

namespace lockstep {

/// x / max(|x|, 1e-7), |x| the Euclidean norm along an axis: Keras's normalize. Same shape.
Symbol l2_normalize(Symbol x, int64_t axis);

}  // namespace lockstep
