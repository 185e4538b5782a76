#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/steps.h"

namespace lockstep {

namespace {

constexpr std::string_view step_prefix = "step_";

struct Skipped {
  int64_t step = 0;
  Damage damage;
};

std::string plain_folder(const std::string& folder) {
  std::string result = folder;
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

FoundCheckpoint opened(const std::string& folder, const std::string& name) {
  Verified verified = read_checkpoint(folder, name);
  const int64_t step = verified.manifest.step;
  return {folder, step, std::move(verified.manifest), std::move(verified.state)};
}

std::string message_of(const Damage& damage, const std::string& consequence) {
  std::string message = damage.headline;
  if (!consequence.empty()) message += "; " + consequence;
  if (!damage.detail.empty()) message += ": " + damage.detail;
  return message;
}

void look_around(const std::string& folder, const std::vector<std::string>& looked_at, std::vector<Problem>& notes) {
  const std::string latest = folder + "/latest";
  struct stat status;
  if (lstat(latest.c_str(), &status) == 0 && stat(latest.c_str(), &status) != 0) {
    notes.push_back({"C06", latest, "leads nowhere; the newest checkpoint was looked for instead", ""});
  }
  for (const std::string& path : looked_at) {
    if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      notes.push_back({"C07", path, "other users may write into this folder; 'chmod go-w' keeps checkpoints yours", ""});
    }
  }
}

}  // namespace

std::vector<StepFolder> steps_of(const std::string& folder) {
  std::error_code failure;
  std::vector<StepFolder> steps;
  for (auto entry = std::filesystem::directory_iterator(folder, failure); entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(step_prefix)) continue;
    int64_t step = 0;
    const auto [end, mistake] = std::from_chars(name.data() + step_prefix.size(), name.data() + name.size(), step);
    // Back to the name, so that step_500 or step_-0000001 is nobody's.
    if (mistake == std::errc() && step >= 0 && name == step_name(step)) steps.push_back({name, step});
  }
  if (failure && failure != std::errc::no_such_file_or_directory) throw Error("C11", folder, "the folder of checkpoints cannot be listed: " + failure.message());
  std::sort(steps.begin(), steps.end(), [](const StepFolder& a, const StepFolder& b) { return a.step > b.step; });
  return steps;
}

void FoundCheckpoint::require_state(std::initializer_list<std::string_view> members) const {
  std::string missing;
  for (const std::string_view member : members) {
    if (state.find(member) == nullptr) missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", member);
  }
  if (missing.empty()) return;
  throw Error("C08", folder, fmt::format("cannot resume exactly: {} lacks {}; to begin a new run from its weights, set restore.from to this folder and another run_folder", state_name, missing));
}

Search find_newest(const std::string& path) {
  const std::string folder = plain_folder(path);
  Search search;
  std::vector<Skipped> skipped;
  for (const StepFolder& step : steps_of(folder)) {
    try {
      FoundCheckpoint found = opened(folder + "/" + step.name, step.name);
      if (found.step != step.step) throw Damage("C01", step.name + " is incomplete", fmt::format("its manifest is of step {}", found.step));
      search.newest = std::move(found);
      break;
    } catch (const Damage& damage) {
      skipped.push_back({step.step, damage});
    }
  }
  for (const auto& [step, damage] : skipped) {
    std::string consequence;
    if (search.newest) {
      const int64_t lost = step - search.newest->step;
      consequence = fmt::format("using {} ({} step{} earlier)", step_name(search.newest->step), lost, lost == 1 ? "" : "s");
    }
    search.skipped.push_back({damage.code, folder, message_of(damage, consequence), ""});
  }
  if (!search.newest && !skipped.empty()) {
    search.skipped.push_back({search.skipped.front().code, folder, "no checkpoint here is good, and a fresh start would hide that; move the folder away, or begin anew with 'resume: never'", ""});
    throw Error(search.skipped);
  }
  std::vector<std::string> looked_at;
  if (search.newest) looked_at = {folder, search.newest->folder};
  look_around(folder, looked_at, search.notes);
  return search;
}

FoundCheckpoint verify_checkpoint(const std::string& path) {
  const std::string folder = plain_folder(path);
  try {
    return opened(folder, std::filesystem::path(folder).filename().string());
  } catch (const Damage& damage) {
    throw Error(damage.code, folder, message_of(damage, ""));
  }
}

std::optional<Search> find_checkpoint(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string folder = plain_folder(path);
  std::error_code ignored;
  if (fs::exists(fs::path(folder) / manifest_name, ignored)) {
    Search search;
    search.newest = verify_checkpoint(folder);
    const std::string parent = fs::path(folder).parent_path().string();
    look_around(parent.empty() ? "." : parent, {folder}, search.notes);
    return search;
  }
  for (const std::string& place : {folder + "/checkpoints", folder}) {
    if (fs::is_directory(place, ignored) && !steps_of(place).empty()) return find_newest(place);
  }
  return std::nullopt;
}

}  // namespace lockstep
