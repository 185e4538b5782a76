#include "layers/norm.h"

#include "core/ops/ops.h"

namespace lockstep {

Symbol l2_normalize(Symbol x, int64_t axis) {
  constexpr double epsilon = 1e-7;
  const Symbol squares = ops::sum(ops::square(x), {axis}, true);
  // The bound is on the square: the root of zero has no finite gradient.
  const Symbol bounded = ops::maximum(squares, x.graph().constant(x.dtype(), epsilon * epsilon));
  return ops::multiply(x, ops::rsqrt(bounded));
}

}  // namespace lockstep
