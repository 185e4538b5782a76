#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value/fields.h"

namespace lockstep {

/// A fault that a job asks for, to see that it is found: `faults:` in a job. Off unless written there.
struct Fault {
  std::string kind;
  int64_t rank = 0;
  int64_t step = 1;

  void fields(Fields& fields);
};

/// The kinds and what each does, for the help.
struct FaultKind {
  std::string name;
  std::string sentence;
};
const std::vector<FaultKind>& fault_kinds();

/// The faults of one rank.
class Faults {
 public:
  Faults(const std::vector<Fault>& all, int rank);

  /// At this point: skip_warm_up, fresh_weights, altered_weight, shared_device.
  bool has(std::string_view kind) const;
  /// Carries out kill, stop and throw when their step has come (before the step's update).
  void at_step(int64_t step) const;
  /// True when `kind` is due at this step.
  bool due(std::string_view kind, int64_t step) const;

 private:
  std::vector<Fault> mine_;
};

}  // namespace lockstep
