#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/graph/op.h"
#include "core/value/value.h"

namespace lockstep {

/// A replica's own proof that it ran, with where it did.
struct LiveReplica {
  LivenessRecord record;
  std::string host;
  int64_t process = 0;
};

/// Gathers the records of all ranks and holds them to what must be: one of each replica for each output, each on the rank that hosts it, the same output
/// bytes everywhere (all ran the same probe on the same weights), no device under two ranks. Throws naming the rank: P21 (no record), P22 (another
/// output), L10 (a device twice). The same list on every rank, by replica.
std::vector<LiveReplica> gather_liveness(Communicator& communicator, const Replicas& replicas, const std::vector<LivenessRecord>& mine, size_t outputs, const std::string& device);

/// "4 of 4 replicas live on 4 ranks, 4 devices"; "... on 1 rank, 1 device (4 share it)".
std::string liveness_line(const std::vector<LiveReplica>& replicas, int count, int ranks);

/// The receipt's part: a list of records.
Value liveness_value(const std::vector<LiveReplica>& replicas);

}  // namespace lockstep
