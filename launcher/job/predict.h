#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "launcher/log.h"

namespace lockstep {

struct PredictRequest {
  std::string target;
  std::vector<std::string> overrides;
  std::string inputs;               ///< FILE.h5:/group, .npy, .npz, .csv
  std::string output;               ///< OUT.h5, .npy, .npz, .csv
  int64_t batch = 32;
  std::vector<std::string> layers;  ///< outputs of these layers instead of the model's
};

/// Writes /outputs/<name> with the rows in the order of the inputs, the same bytes at any number of ranks. Returns the number of rows.
int64_t predict(Communicator& communicator, const Log& log, const PredictRequest& request);

}  // namespace lockstep
