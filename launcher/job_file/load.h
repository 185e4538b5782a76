#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/job_file/job.h"

namespace lockstep {

struct LoadedJob {
  Job job;
  /// The same as a tree: every key, defaults too. What was written has its place; what was not has none.
  Value resolved;
  std::vector<std::string> files;  ///< the job file and what it includes, in the order of reading
  std::string folder;              ///< of the job file, absolute
};

/// Reads a job file: includes merged, ${VARIABLE} taken from the environment ($${ stands for ${), overrides applied, relative paths made absolute from the
/// folder of the file in which they are written (an override's: the working directory). Overrides, in order:
///   key.path=value, key[2].path=value   a YAML value for a key that the file has or may have
///   +new.key=value                      adds a key where the job takes any, or an item at a list's end
///   ~key.path                           takes a key out
/// Throws every problem of the file and the command line at once: Y01 to Y28, Y40 to Y42.
LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides = {});

/// Throws Y11 for each key that a command needs and the job lacks: train, check, evaluate, gradcheck; other commands need a model alone.
void require_keys(const LoadedJob& loaded, std::string_view command);

/// The text as a path, absolute from the folder of the file in which it is written.
std::string resolve_path(const Value& text);

/// config.resolved.yaml: every key with a comment that says where it comes from ("job.yaml:14", "default", "command line"). Loads as the same job.
std::string resolved_yaml(const LoadedJob& loaded);

}  // namespace lockstep
