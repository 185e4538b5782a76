#pragma once

#include "core/ops/ops.h"

namespace lockstep::losses {

/// Probabilities kept away from 0 and 1 by Keras's epsilon, so that their logarithm stays finite.
inline Symbol clipped(Symbol probabilities) {
  constexpr double epsilon = 1e-7;
  return ops::clip(probabilities, epsilon, 1 - epsilon);
}

}  // namespace lockstep::losses
