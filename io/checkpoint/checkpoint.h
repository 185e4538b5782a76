#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error/error.h"
#include "core/value/value.h"
#include "io/checkpoint/file_operations.h"
#include "io/checkpoint/manifest.h"

namespace lockstep {

/// A file of a checkpoint, in memory.
struct ContentFile {
  std::string name;  ///< "model.keras", "custom_layers.py"
  std::vector<std::byte> bytes;
};

/// All that a checkpoint is made of.
struct CheckpointContent {
  int64_t step = 0;
  std::vector<ContentFile> files;
  Value state = Value::map();  ///< becomes state.json
  std::vector<TensorRecord> tensors;
  Value facts = Value::map();  ///< processor, oneDNN version, ...
};

/// What a commit did.
struct Commit {
  int64_t step = 0;
  std::string folder;              ///< "runs/a/checkpoints/step_00000500"
  int64_t bytes = 0;               ///< of all its files
  bool was_there = false;          ///< the same checkpoint had been committed before
  std::vector<std::string> notes;  ///< what went wrong after the commit: an old folder that could not be removed, ...
};

/// "step_00000500"
std::string step_name(int64_t step);

/// Writes a checkpoint into `folder` ("runs/a/checkpoints", made where absent) so that a crash or a loss of power at any moment leaves either the old
/// state or the new: a temporary folder in the same place -> its files -> fsync -> the manifest -> fsync of the folder -> rename -> fsync of the parent.
/// Then `latest` is pointed at it, and all but the newest `keep` (at least 2) good ones are removed. When it returns, the step is committed.
/// The same checkpoint twice is fine; another one of the same step takes the place of the first.
/// Throws W01 when it could not be written: nothing of it is left then, and earlier ones are as they were.
/// One caller at a time a folder. `step` is not negative and `files` has neither a state.json nor a manifest.json.
Commit commit_checkpoint(const std::string& folder, const CheckpointContent& content, int64_t keep, FileOperations& files = FileOperations::posix());

/// Makes the folder and proves that files can be written and renamed in it: throws W02 with the way out. For the time before training.
void check_writable(const std::string& folder, FileOperations& files = FileOperations::posix());

enum class Stale {
  dead_processes,  ///< of this process's earlier saves, and of processes of this host that are gone
  every,           ///< whoever made them: for the holder of the run folder's lock
};
/// Removes temporary folders that interrupted saves left behind; returns how many.
int64_t sweep_temporary_folders(const std::string& folder, Stale stale, FileOperations& files = FileOperations::posix());

/// A checkpoint whose every byte is as its manifest says.
struct FoundCheckpoint {
  std::string folder;  ///< "runs/a/checkpoints/step_00000500"
  int64_t step = 0;
  Manifest manifest;
  Value state;  ///< state.json; null where the checkpoint has none

  /// Throws C08 when a member is missing, which would make the resume inexact.
  void require_state(std::initializer_list<std::string_view> members) const;
};

/// The outcome of a search. Nothing found and nothing skipped: a fresh start.
struct Search {
  std::optional<FoundCheckpoint> newest;
  std::vector<Problem> skipped;  ///< newer ones that are not good: "step_00000500 is incomplete; using step_00000400 (100 steps earlier)"
  std::vector<Problem> notes;    ///< C06: `latest` leads nowhere; C07: others may write into the folder
};

/// The newest good checkpoint of a folder, every byte read and compared. Changes nothing. A folder that isn't there holds none.
/// Throws, listing each one, when there are checkpoints and none is good.
Search find_newest(const std::string& folder);

/// One checkpoint folder. Throws C01, C02, C03, C05 or C10 when it is not good.
FoundCheckpoint verify_checkpoint(const std::string& folder);

/// A checkpoint folder, a folder of them or a run folder; nothing when the path is none of these. Throws as the two above.
std::optional<Search> find_checkpoint(const std::string& path);

}  // namespace lockstep
