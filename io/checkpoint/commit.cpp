#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/process.h"
#include "io/checkpoint/steps.h"
#include "io/json/json.h"

namespace lockstep {

namespace {

constexpr std::string_view temporary_prefix = ".tmp-";

std::string temporary_name(const std::string& what) { return fmt::format("{}{}-{}-{}", temporary_prefix, what, host_name(), getpid()); }

bool exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

void make_folder(FileOperations& files, const std::string& folder) {
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  const std::string parent = std::filesystem::path(folder).parent_path().string();
  make_folder(files, parent);
  if (files.mkdir(folder, 0755) < 0 && errno != EEXIST) fail_to("make the folder", folder, errno);
  sync_folder(files, parent.empty() ? "." : parent);
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

struct Prepared {
  std::string state;
  Manifest manifest;
  std::string manifest_text;
  int64_t bytes = 0;
};

Prepared prepare(const CheckpointContent& content) {
  Prepared result;
  result.state = write_json(content.state, 2);
  // A number that isn't finite could be written but not read: better to fail now than after a crash.
  read_json_text(std::string(state_name), result.state, "W01");
  result.manifest.step = content.step;
  result.manifest.tensors = content.tensors;
  result.manifest.facts = content.facts;
  for (const ContentFile& file : content.files) {
    result.manifest.files.push_back({file.name, static_cast<int64_t>(file.bytes.size()), hash_of(file.bytes)});
  }
  result.manifest.files.push_back({std::string(state_name), static_cast<int64_t>(result.state.size()), hash_of(bytes_of(result.state))});
  result.manifest_text = manifest_text(result.manifest);
  result.bytes = static_cast<int64_t>(result.manifest_text.size());
  for (const FileRecord& file : result.manifest.files) result.bytes += file.bytes;
  return result;
}

bool holds(const std::string& folder, const Manifest& manifest) {
  try {
    return manifest_text(read_checkpoint(folder, "").manifest) == manifest_text(manifest);
  } catch (const Damage&) {
    return false;
  }
}

/// Gives the finished folder its name. What had the name before is then under `temporary`, as it is when this fails.
void install(FileOperations& files, const std::string& parent, const std::string& temporary, const std::string& target) {
  const bool replaces = exists(target);
  if (!replaces) {
    if (files.rename(temporary, target) < 0) fail_to("rename the finished checkpoint to its name", target, errno);
  } else if (files.exchange(temporary, target) < 0) {
    if (errno != EINVAL && errno != ENOSYS) fail_to("exchange the finished checkpoint with the earlier one of its step", target, errno);
    // Where names can't be exchanged there is a moment without this step; older steps are there all the time.
    const std::string aside = temporary + "-old";
    if (files.rename(target, aside) < 0) fail_to("put the earlier checkpoint of this step aside", target, errno);
    if (files.rename(temporary, target) < 0) {
      const int reason = errno;
      files.rename(aside, target);
      fail_to("rename the finished checkpoint to its name", target, reason);
    }
    if (files.rename(aside, temporary) < 0) fail_to("put the earlier checkpoint of this step aside", aside, errno);
  }
  try {
    sync_folder(files, parent);
  } catch (const Error&) {
    // Not known to be on the disk, so not committed: a checkpoint that nobody announced must not stay either.
    if (!replaces) {
      files.rename(target, temporary);
    } else if (files.exchange(temporary, target) < 0) {
      remove_all(files, target);
      files.rename(temporary, target);
    }
    throw;
  }
}

void point_latest(FileOperations& files, const std::string& folder, const std::string& name) {
  const std::string link = folder + "/" + temporary_name("latest");
  remove_all(files, link);
  if (files.symlink(name, link) < 0) fail_to("make the link", link, errno);
  if (files.rename(link, folder + "/latest") < 0) fail_to("rename the link to 'latest'", folder, errno);
}

void prune(FileOperations& files, const std::string& folder, int64_t keep, int64_t committed) {
  int64_t good = 0;
  for (const StepFolder& step : steps_of(folder)) {
    const std::string path = folder + "/" + step.name;
    if (step.step == committed) {
      ++good;
    } else if (good >= keep) {
      // Renamed first: half a checkpoint never has a checkpoint's name.
      const std::string doomed = folder + "/" + temporary_name(step.name);
      if (files.rename(path, doomed) < 0) fail_to("remove an old checkpoint", path, errno);
      remove_all(files, doomed);
    } else {
      try {
        read_checkpoint(path, step.name);
        ++good;
      } catch (const Damage&) {
        // It doesn't count as one that is kept, and goes when it is old.
      }
    }
  }
}

struct Owner {
  std::string host;
  pid_t process = 0;
};

/// From ".tmp-<what>-<host>-<process>", perhaps with "-old"; <what> has no '-'.
std::optional<Owner> owner_of(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return std::nullopt;
  name.remove_prefix(temporary_prefix.size());
  if (name.ends_with("-old")) name.remove_suffix(4);
  const size_t host = name.find('-');
  const size_t process = name.rfind('-');
  if (host == std::string_view::npos || process == host) return std::nullopt;
  Owner owner{std::string(name.substr(host + 1, process - host - 1)), 0};
  const auto [end, failure] = std::from_chars(name.data() + process + 1, name.data() + name.size(), owner.process);
  if (failure != std::errc() || end != name.data() + name.size() || owner.process <= 0) return std::nullopt;
  return owner;
}

}  // namespace

std::string step_name(int64_t step) { return fmt::format("step_{:08}", step); }

Commit commit_checkpoint(const std::string& folder, const CheckpointContent& content, int64_t keep, FileOperations& files) {
  const FileSizeSignalHeld held;
  const Prepared prepared = prepare(content);
  const std::string name = step_name(content.step);
  Commit commit{content.step, folder + "/" + name, prepared.bytes, false, {}};
  const std::string temporary = folder + "/" + temporary_name(name);
  try {
    make_folder(files, folder);
    sweep_temporary_folders(folder, Stale::dead_processes, files);
    commit.was_there = exists(commit.folder) && holds(commit.folder, prepared.manifest);
    if (commit.was_there) {
      // Its files were on the disk before it had its name; the name itself may not have been.
      sync_folder(files, folder);
    } else {
      if (files.mkdir(temporary, 0755) < 0) fail_to("make the folder", temporary, errno);
      for (const ContentFile& file : content.files) write_durably(files, temporary + "/" + file.name, file.bytes);
      write_durably(files, fmt::format("{}/{}", temporary, state_name), bytes_of(prepared.state));
      write_durably(files, fmt::format("{}/{}", temporary, manifest_name), bytes_of(prepared.manifest_text));
      sync_folder(files, temporary);
      install(files, folder, temporary, commit.folder);
    }
  } catch (const Error& error) {
    try {
      remove_all(files, temporary);
    } catch (const Error&) {
      // What can't be removed now is swept by the next save.
    }
    const Problem& cause = error.problems().front();
    throw Error("W01", commit.folder, fmt::format("the checkpoint of step {} was not saved: {} ({}); earlier checkpoints are as they were", content.step, cause.message, cause.place));
  }

  const auto note = [&](auto&& step) {
    try {
      step();
    } catch (const Error& error) {
      commit.notes.push_back(error.problems().front().place + ": " + error.problems().front().message);
    }
  };
  note([&] { remove_all(files, temporary); });
  note([&] { point_latest(files, folder, name); });
  note([&] { prune(files, folder, std::max<int64_t>(keep, 2), content.step); });
  return commit;
}

void check_writable(const std::string& folder, FileOperations& files) {
  const FileSizeSignalHeld held;
  const std::string probe = folder + "/" + temporary_name("probe");
  try {
    make_folder(files, folder);
    remove_all(files, probe);
    constexpr std::byte something[1] = {};
    replace_file(files, probe, something);
    remove_all(files, probe);
  } catch (const Error& error) {
    const Problem& cause = error.problems().front();
    throw Error("W02", folder, fmt::format("checkpoints cannot be written here: {} ({}); make the folder writable or name another in 'run_folder'", cause.message, cause.place));
  }
}

int64_t sweep_temporary_folders(const std::string& folder, Stale stale, FileOperations& files) {
  int64_t swept = 0;
  const std::string host = host_name();
  std::error_code failure;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) names.push_back(entry.path().filename().string());
  for (const std::string& name : names) {
    const auto owner = owner_of(name);
    if (!owner) continue;
    const bool abandoned = owner->host == host && (owner->process == getpid() || !process_exists(owner->process));
    if (stale != Stale::every && !abandoned) continue;
    remove_all(files, folder + "/" + name);
    ++swept;
  }
  return swept;
}

}  // namespace lockstep
