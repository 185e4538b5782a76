#include "launcher/job/faults.h"

#include <algorithm>
#include <csignal>

#include <unistd.h>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

const std::vector<FaultKind>& fault_kinds() {
  static const std::vector<FaultKind> kinds = {
      {"skip_warm_up", "The rank's replicas take no part in the warm-up."},
      {"fresh_weights", "The rank keeps its fresh weights where others take the restored ones."},
      {"altered_weight", "One weight of the rank is altered after the broadcast."},
      {"shared_device", "The rank says that it computes on the device of the rank before it."},
      {"kill", "The rank kills itself with SIGKILL at the step."},
      {"stop", "The rank stops itself with SIGSTOP at the step."},
      {"throw", "The rank fails with an error at the step."},
      {"flip", "One bit of a weight of the rank flips after the step."},
  };
  return kinds;
}

void Fault::fields(Fields& fields) {
  std::vector<std::string> names;
  for (const FaultKind& each : fault_kinds()) names.push_back(each.name);
  fields.add("kind", kind, "What happens.").require().one_of(names);
  fields.add("rank", rank, "On which rank.").at_least(0);
  fields.add("step", step, "At which step, from 1; the first four kinds come before it.").at_least(1);
}

Faults::Faults(const std::vector<Fault>& all, int rank) {
  std::copy_if(all.begin(), all.end(), std::back_inserter(mine_), [&](const Fault& fault) { return fault.rank == rank; });
}

bool Faults::has(std::string_view kind) const {
  return std::any_of(mine_.begin(), mine_.end(), [&](const Fault& fault) { return fault.kind == kind; });
}

bool Faults::due(std::string_view kind, int64_t step) const {
  return std::any_of(mine_.begin(), mine_.end(), [&](const Fault& fault) { return fault.kind == kind && fault.step == step; });
}

void Faults::at_step(int64_t step) const {
  for (const Fault& fault : mine_) {
    if (fault.step != step) continue;
    if (fault.kind == "kill") ::kill(::getpid(), SIGKILL);
    if (fault.kind == "stop") ::kill(::getpid(), SIGSTOP);
    if (fault.kind == "throw") throw Error("X20", "", fmt::format("rank {} failed at step {}, as the job's faults say", fault.rank, step));
  }
}

}  // namespace lockstep
