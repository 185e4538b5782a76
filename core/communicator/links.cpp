#include "core/communicator/links.h"

#include <algorithm>

namespace lockstep {

int Placement::local_index(int of_rank) const {
  const std::vector<int>& ranks = nodes[static_cast<size_t>(node_of[static_cast<size_t>(of_rank)])];
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), of_rank) - ranks.begin());
}

int Placement::helper(int on_node, int of_rank) const {
  const std::vector<int>& ranks = nodes[static_cast<size_t>(on_node)];
  return ranks[static_cast<size_t>(local_index(of_rank)) % ranks.size()];
}

}  // namespace lockstep
