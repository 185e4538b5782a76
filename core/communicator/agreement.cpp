#include "core/communicator/communicator.h"
#include "core/communicator/problems.h"

namespace lockstep {

std::string on_root(Communicator& communicator, std::string_view operation, const std::function<std::string()>& step) {
  std::string result;
  struct Outcome {
    uint64_t failed = 0;
    uint64_t size = 0;
  } outcome;
  if (communicator.rank() == 0) {
    try {
      result = step();
    } catch (...) {
      result = pack(current_problems());
      outcome.failed = 1;
    }
    outcome.size = result.size();
  }
  communicator.broadcast(std::as_writable_bytes(std::span(&outcome, 1)), 0, operation);
  result.resize(outcome.size);
  communicator.broadcast(std::as_writable_bytes(std::span(result)), 0, operation);
  if (outcome.failed != 0) throw Error(unpack(result));
  return result;
}

void together(Communicator& communicator, std::string_view operation, const std::function<void()>& step) {
  std::string problems;
  try {
    step();
  } catch (...) {
    problems = pack(current_problems());
  }
  for (const std::string& of_rank : communicator.all_gather(problems, operation)) {
    if (!of_rank.empty()) throw Error(unpack(of_rank));
  }
}

}  // namespace lockstep
