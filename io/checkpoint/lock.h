#pragma once

#include <string>

namespace lockstep {

/// The right to write into a run folder, held by one process at a time and let go by the destructor. The file `lock` names the holder: host, process, job id.
/// A holder that has died is found out and replaced: the kernel lets go of a dead process's file lock; on file systems without these locks the process is looked for;
/// a holder on another host counts as gone when its job id is ours, because a scheduler restarts a job only after its end.
class RunLock {
 public:
  /// Waits up to `limit_seconds` for a live holder, then throws L20 naming it. `job` is the scheduler's id of this job, or empty.
  /// The folder must exist; L21 when the lock file can't be made.
  explicit RunLock(const std::string& folder, const std::string& job = "", double limit_seconds = 10);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace lockstep
