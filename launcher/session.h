#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/communicator/communicator.h"
#include "core/error/error.h"
#include "launcher/log.h"

namespace lockstep {

/// How a command's ranks are started.
struct SessionOptions {
  int threads = 0;        ///< --ranks: ranks as threads of this process; 0: not given
  bool computes = false;  ///< train, evaluate, predict: a launcher that started more tasks than MPI knows of is an error for these
  bool quiet = false;
};

/// Thrown by run_ranks in the place of an Error that has been printed: what is left is the exit code.
struct Told {
  ExitCode code = ExitCode::internal;
};

/// Prints an error once for all ranks of a job: rank 0 does, and where rank 0 itself is missing the rank that waited for it.
void tell(const Error& error, int rank);

/// Runs `rank_main` on every rank: under a launcher one process a rank (MPI), else one rank, or threads. What a rank throws is thrown on every rank:
/// under MPI as Told, printed before the ranks leave together, since a rank that leaves early with a code makes mpirun kill the others. Throws L-family where the launcher's count of tasks and MPI's differ, with both numbers and the remedy.
void run_ranks(const SessionOptions& options, const std::function<void(Communicator&, const Log&)>& rank_main);

}  // namespace lockstep
