#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/trainer/forward.h"
#include "launcher/job/blueprint.h"
#include "launcher/log.h"
#include "layers/training.h"

namespace lockstep {

/// The logged numbers of an evaluation from its sums, in the order of `numbers`: weighted over all samples.
std::vector<std::pair<std::string, double>> evaluation_numbers(const std::vector<LoggedNumber>& numbers, const EvaluationSums& sums);

struct EvaluateRequest {
  std::string target;
  std::vector<std::string> overrides;
  std::string data_job;  ///< --data: a job whose data.test (else data.validation, data.train), losses and metrics are used; empty: the target's own
};

/// {"samples": N, "loss": ..., metrics}, the same on every rank and at any number of ranks.
Value evaluate_target(Communicator& communicator, const Log& log, const EvaluateRequest& request);

}  // namespace lockstep
