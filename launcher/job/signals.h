#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// A stack for signal handlers of the thread that makes it. oneDNN's products run with the stack pointer inside a buffer on the heap: a handler on that
/// stack would write over the heap.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::vector<char> memory_;
};

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
