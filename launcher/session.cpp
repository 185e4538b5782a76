#include "launcher/session.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/onednn/onednn.h"

namespace lockstep {

namespace {

std::optional<int> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > 10'000'000) return std::nullopt;
  return static_cast<int>(value);
}

constexpr std::string_view remedy = "start with 'mpirun -n N lockstep ...' or 'srun --mpi=pmix -n N lockstep ...' (MPI built with PMIx), or give --ranks N for threads of one process";

/// A launcher whose tasks MPI does not know of would run N jobs of one rank each, on the same files.
void check_task_count(int mpi_size) {
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const std::optional<int> tasks = number_in_environment(name);
    if (tasks && *tasks > mpi_size) {
      throw Error("L01", "", fmt::format("the launcher started {} tasks ({}={}), but MPI has {} rank{}: they would not work together. {}", *tasks, name, *tasks, mpi_size, mpi_size == 1 ? "" : "s", remedy));
    }
  }
}

/// A batch shell runs its commands once, whatever was asked for.
void check_batch_shell() {
  const std::optional<int> tasks = number_in_environment("SLURM_NTASKS");
  if (tasks && *tasks > 1 && !number_in_environment("SLURM_STEP_NUM_TASKS")) {
    throw Error("L01", "", fmt::format("this batch job has {} tasks (SLURM_NTASKS), but nothing launched them: 1 rank would run. {}", *tasks, remedy));
  }
}

}  // namespace

void tell(const Error& error, int rank) {
  const std::string_view text = error.what();
  const bool rank_0_is_missing = text.find(" for rank 0") != std::string_view::npos || text.find(" for ranks 0") != std::string_view::npos;
  if (rank != 0 && !rank_0_is_missing) return;
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

namespace {

/// A wait that ran out: peers may be dead, and MPI_Finalize would wait for them for ever.
bool peers_may_be_gone(const Error& error) {
  return !error.problems().empty() && (error.problems().front().code == "P01" || error.problems().front().code == "P02");
}

}  // namespace

void run_ranks(const SessionOptions& options, const std::function<void(Communicator&, const Log&)>& rank_main) {
  const auto run = [&](Communicator& communicator) {
    use_one_thread();
    rank_main(communicator, Log(communicator.rank() == 0, options.quiet));
  };
  if (started_by_launcher()) {
    if (options.threads > 1) throw Error("L02", "", fmt::format("--ranks {} under a launcher: ranks are its processes; leave --ranks out, or run without mpirun", options.threads));
    MpiSession session;
    if (options.computes) check_task_count(session.size());
    const std::unique_ptr<Communicator> communicator = session.make_communicator();
    try {
      run(*communicator);
    } catch (const Error& error) {
      communicator->report_failure(error);
      tell(error, communicator->rank());
      if (peers_may_be_gone(error)) ::_exit(static_cast<int>(error.exit_code()));
      throw Told{error.exit_code()};
    }
    return;
  }
  if (options.computes && options.threads == 0) {
    check_task_count(1);
    check_batch_shell();
  }
  if (options.threads > 1) {
    run_ranks_as_threads(options.threads, run);
  } else {
    run(*make_single_communicator());
  }
}

}  // namespace lockstep
