#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/program/program.h"
#include "core/trainer/mirrored_state.h"
#include "core/trainer/row_source.h"
#include "core/trainer/traced_step.h"

namespace lockstep {

/// Runs a traced step that only goes forward, one whole batch at a time: prediction and evaluation. Replicas do not limit it.
class ForwardRunner {
 public:
  /// `trace` is called for each count of rows when it first comes; the state must outlive the runner.
  ForwardRunner(TraceStep trace, MirroredState& state, uint64_t seed, std::string device);

  struct Result {
    const Program* program = nullptr;  ///< outputs and reports are its kept values, part 0
    const TracedStep* step = nullptr;
  };
  /// The batch's rows of the source, in order.
  Result run(const RowSource& source, std::span<const int64_t> rows);

 private:
  TraceStep trace_;
  MirroredState& state_;
  std::string device_;
  StepContext context_;
  std::unique_ptr<Communicator> alone_;
  std::map<int64_t, std::shared_ptr<Program>> programs_;
};

/// Sums of each report over the batches of a whole data set, batch i computed by rank i mod N and added in batch order: the same bits at any number
/// of ranks. Every rank gets them. `samples` counts rows.
struct EvaluationSums {
  std::vector<std::pair<std::string, std::vector<double>>> reports;
  int64_t samples = 0;
};
EvaluationSums evaluate(Communicator& communicator, ForwardRunner& runner, const RowSource& source, int64_t batch);

/// Makes every hosted replica run the forward computation on the same probe, filled into each input, and returns what the programs themselves wrote.
std::vector<LivenessRecord> run_probe(Communicator& communicator, const Replicas& replicas, const TraceStep& trace, MirroredState& state, uint64_t seed, const std::string& device, int64_t probe_rows, const std::function<void(const TracedStep::Input&, std::span<std::byte>)>& fill,
                                      std::vector<PrintedLine>* printed);

}  // namespace lockstep
