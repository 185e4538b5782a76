#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/lock.h"
#include "launcher/job_file/load.h"

namespace lockstep {

/// Rank 0's hold on the folder of a run: locked, writable, its newest good checkpoint found.
struct RunFolder {
  std::string path;
  std::unique_ptr<RunLock> lock;
  std::optional<FoundCheckpoint> checkpoint;  ///< where the run goes on from; none: it begins
  std::vector<std::string> notes;             ///< what was found, skipped, moved
};

/// `checkpoint.resume`: auto goes on from the folder's newest good checkpoint; never moves a used folder to NAME.1; a folder is where another run's
/// checkpoint is taken from. Makes the folder. Throws C-family (all checkpoints bad), L20 (another job has it), W02 (can't be written).
RunFolder open_run_folder(const Job& job);

/// load_job has set it: runs/NAME beside the job file unless the job says.
std::string run_folder_path(const Job& job);
std::string checkpoints_path(const std::string& run_folder);

}  // namespace lockstep
