#pragma once

#include <cstddef>
#include <vector>

#include "core/communicator/replicas.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// The fixed binary tree in which the contributions of replicas are added. tree[lo, hi) is the leaf lo where hi - lo is 1, else
/// tree[lo, middle) + tree[middle, hi) with middle = lo + the largest power of two below hi - lo. Whoever adds a whole subtree gets its bits, so a sum
/// does not depend on which rank or node did which part.
int64_t tree_middle(Range node);

/// The largest whole subtrees of the tree over [0, count) that lie inside `run`, from left to right. They tile `run`.
std::vector<Range> subtrees_inside(int count, Range run);

/// Throws X01 unless TreeSum adds the dtype: float32, float64, int64, uint64. Integers wrap.
void check_tree_adds(DType dtype);

/// The sum over the subtree `node` in postfix, for machines with a stack: i pushes input i, -1 adds the upper two. Inputs as for TreeSum.
std::vector<int> postfix_of(Range node, const std::vector<Range>& inputs);

/// Adds one subtree from parts of it. The order is worked out once; run() allocates nothing.
class TreeSum {
 public:
  /// The sum over the subtree `node`, from the sums over `inputs`: whole subtrees of it that tile it, from left to right.
  /// Throws X01 as check_tree_adds.
  TreeSum(DType dtype, Range node, const std::vector<Range>& inputs);

  /// Adds elements [first, first + count) of every input. The result is in `out` (count values), or, where there is one input, in place in that:
  /// where it is comes back. Inputs and `out` must not overlap.
  const std::byte* run(const std::byte* const* inputs, int64_t first, int64_t count, std::byte* out);

 private:
  /// target = the sum of 2 to 4 sources, as (a + b), (a + b) + c or (a + b) + (c + d).
  struct Step {
    int arity = 0;
    int sources[4] = {};  // an input, or -1 - scratch number; scratch 0 is `out`
    int target = 0;       // a scratch number
  };

  int plan(Range node, int scratch);
  int input_of(Range node) const;
  bool is_input(Range node) const { return input_of(node) >= 0; }

  DType dtype_;
  size_t element_;
  std::vector<Range> inputs_;
  std::vector<Step> steps_;
  std::vector<std::byte> scratch_;
};

}  // namespace lockstep
