#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/error/error.h"
#include "launcher/log.h"

namespace lockstep {

struct TrainRequest {
  std::string job;
  std::vector<std::string> overrides;
  bool allow_config_change = false;  ///< go on with a checkpoint though keys changed that may not
};

/// A job from its file to its last checkpoint: build, restore, mirror, warm up, train. Goes on from the run folder's newest checkpoint when there is one.
/// Every rank gets the same result: done, or preempted after a commit. Throws what went wrong.
ExitCode train(Communicator& communicator, const Log& log, const TrainRequest& request);

}  // namespace lockstep
