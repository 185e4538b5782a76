#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/trainer/mirrored_state.h"

namespace lockstep {

/// Gives rank 0's values of every variable to all ranks.
void broadcast_state(Communicator& communicator, MirroredState& state);

/// Hashes of every variable, in order: the same on every rank, or P20 naming the first variable and the ranks that differ from rank 0 (from most
/// ranks where rank 0 is the odd one).
std::vector<std::string> check_mirrored(Communicator& communicator, const MirroredState& state, std::string_view when);

/// The ranks whose text is not that of most ranks (of rank 0 in a tie), in order; empty when all agree.
std::vector<int> odd_ranks(const std::vector<std::string>& texts);

/// "rank 2", "ranks 1, 3"
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace lockstep
