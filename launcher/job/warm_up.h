#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/trainer/mirrored_state.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/liveness.h"
#include "launcher/log.h"
#include "layers/training.h"

namespace lockstep {

struct WarmUp {
  int64_t batch = 1;
  std::string fill = "ones";  ///< ones, zeros, or a number
  bool skip = false;          ///< a fault: this rank's replicas take no part
  std::string device;
};

/// Every replica runs its own forward pass on the same probe, in the model's shapes and dtypes. What their programs wrote is gathered, held to what must
/// be, and logged: "4 of 4 replicas live on 4 ranks, 4 devices".
std::vector<LiveReplica> run_warm_up(Communicator& communicator, const Log& log, const Blueprint& blueprint, const TracedModel& model, MirroredState& state, const Replicas& replicas, const WarmUp& warm_up);

/// Lines that Print layers made on all ranks, on rank 0 in replica order with layer path and device; elsewhere none.
std::vector<std::string> gather_printed(Communicator& communicator, const std::vector<PrintedLine>& mine, const std::string& device);

}  // namespace lockstep
