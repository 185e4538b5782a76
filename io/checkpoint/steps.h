#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// A folder that is called as a checkpoint is.
struct StepFolder {
  std::string name;  ///< "step_00000500"
  int64_t step = 0;
};

/// Those in a folder, newest first; none when there is no such folder. Throws C11 when it can't be listed.
std::vector<StepFolder> steps_of(const std::string& folder);

}  // namespace lockstep
