#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/error/error.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/file_operations.h"

namespace lockstep {

/// Commits checkpoints behind the training: a thread of its own, one save in flight. Its thread takes no signals of the process.
/// For one owner thread.
class CheckpointWriter {
 public:
  /// What became of a save.
  struct Outcome {
    int64_t step = 0;
    std::optional<Commit> commit;  ///< present: committed, and only now may it be announced
    std::optional<Error> error;    ///< present: not saved
  };

  CheckpointWriter(std::string folder, int64_t keep, FileOperations& files = FileOperations::posix());
  /// Waits for the save in flight.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Returns at once when no save is in flight, else waits for that one first. `make` runs on the writer's thread: it may turn a copy of the state into
  /// file bytes, and must not touch what training changes.
  void save(int64_t step, std::function<CheckpointContent()> make);
  void save(CheckpointContent content);
  /// A save is in flight.
  bool busy() const;
  /// The oldest outcome not yet taken; nothing when there is none. Never waits.
  std::optional<Outcome> outcome();
  /// Waits until no save is in flight.
  void wait();
  /// Failed saves since the last one that was committed.
  int64_t failures_in_a_row() const;

 private:
  struct Job {
    int64_t step = 0;
    std::function<CheckpointContent()> make;
  };
  void run();
  Outcome carry_out(const Job& job);

  const std::string folder_;
  const int64_t keep_;
  FileOperations& files_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;
  bool stopping_ = false;
  std::deque<Outcome> outcomes_;
  int64_t failures_ = 0;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep
