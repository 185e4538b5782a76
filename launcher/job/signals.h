#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// Turns signals into a flag that the training looks at between steps. The handler only sets the flag. One at a time in a process.
class StopSignals {
 public:
  /// Names without SIG: "USR2", "TERM". Throws Y13 for an unknown one.
  explicit StopSignals(const std::vector<std::string>& names);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool raised() const;

 private:
  std::vector<int> numbers_;
};

}  // namespace lockstep
