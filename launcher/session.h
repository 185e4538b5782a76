#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/communicator/communicator.h"
#include "launcher/log.h"

namespace lockstep {

/// How a command's ranks are started.
struct SessionOptions {
  int threads = 0;        ///< --ranks: ranks as threads of this process; 0: not given
  bool computes = false;  ///< train, evaluate, predict: a launcher that started more tasks than MPI knows of is an error for these
  bool quiet = false;
};

/// Runs `rank_main` on every rank: under a launcher one process a rank (MPI), else one rank, or threads. Throws what a rank threw, the same on every
/// rank. Throws L-family where the launcher's count of tasks and MPI's differ, with both numbers and the remedy.
void run_ranks(const SessionOptions& options, const std::function<void(Communicator&, const Log&)>& rank_main);

}  // namespace lockstep
