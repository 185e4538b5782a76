#include "launcher/job/run_folder.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

bool is_used(const fs::path& folder) { return fs::exists(folder / "checkpoints") || fs::exists(folder / "metrics.csv"); }

/// The first free name: NAME.1, NAME.2, ...
fs::path free_name(const fs::path& folder) {
  for (int i = 1;; ++i) {
    fs::path candidate = folder.string() + "." + std::to_string(i);
    if (!fs::exists(candidate)) return candidate;
  }
}

}  // namespace

std::string run_folder_path(const Job& job) { return job.run_folder; }
std::string checkpoints_path(const std::string& run_folder) { return (fs::path(run_folder) / "checkpoints").string(); }

RunFolder open_run_folder(const Job& job) {
  RunFolder run;
  run.path = run_folder_path(job);
  const std::string& resume = job.checkpoint.resume;
  std::error_code failure;
  if (resume == "never" && is_used(run.path)) {
    const fs::path moved = free_name(run.path);
    {
      const RunLock lock(run.path);  // a live run is not moved away
    }
    fs::rename(run.path, moved, failure);
    if (failure) throw Error("W02", run.path, fmt::format("cannot be moved to {}: {}", moved.string(), failure.message()));
    run.notes.push_back(fmt::format("resume: never: the run that was in {} is now in {}", run.path, moved.string()));
  }
  fs::create_directories(run.path, failure);
  if (failure) throw Error("W02", run.path, fmt::format("cannot be made: {}; set run_folder to a place that can be written", failure.message()));
  const char* scheduler_job = std::getenv("SLURM_JOB_ID");
  run.lock = std::make_unique<RunLock>(run.path, scheduler_job ? scheduler_job : "");
  const std::string checkpoints = checkpoints_path(run.path);
  check_writable(checkpoints);
  sweep_temporary_folders(checkpoints, Stale::every);
  Search search = find_newest(checkpoints);
  if (!search.newest && resume != "auto" && resume != "never") {
    std::optional<Search> other = find_checkpoint(resume);
    if (!other || !other->newest) throw Error("C01", resume, "checkpoint.resume: no checkpoint has been committed there");
    search = std::move(*other);
  }
  for (const Problem& problem : search.skipped) run.notes.push_back(problem.text());
  for (const Problem& problem : search.notes) run.notes.push_back(problem.message);
  run.checkpoint = std::move(search.newest);
  return run;
}

}  // namespace lockstep
