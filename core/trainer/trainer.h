#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/optimizer/optimizer.h"
#include "core/program/program.h"
#include "core/trainer/mirrored_state.h"
#include "core/trainer/row_source.h"
#include "core/trainer/traced_step.h"

namespace lockstep {

/// What ranks tell each other with every step: each is a count of ranks, so that all take the same branch at the same step.
struct ControlWord {
  double stop = 0;        ///< ranks that were told to stop (a signal)
  double checkpoint = 0;  ///< ranks that want a checkpoint now
  double not_finite = 0;  ///< ranks whose part of the last update met a value that is not finite
};

/// One step's results, the same on every rank.
struct StepReport {
  std::map<std::string, std::vector<double>> reports;  ///< sums over replicas, by report name
  ControlWord control;
  bool updated = false;  ///< false when every sample's weight was zero
};

/// Trains: replicas of one traced step on this rank, the sums over all, the sharded update. Knows layers and files only by its interfaces.
class Trainer {
 public:
  struct Options {
    Replicas replicas;
    uint64_t seed = 0;
    std::string device = "cpu:0";
    std::string valid_report = "valid";  ///< the report that is zero when no sample counts
  };
  /// `trace` is called for each shape of step when it first comes. All arguments outlive the trainer.
  Trainer(Communicator& communicator, Options options, TraceStep trace, MirroredState& state, const Optimizer& optimizer);
  ~Trainer();

  /// Compiles the program for a global batch of so many rows, so that the first step replays.
  void prepare(int64_t global_rows);
  /// One step on these rows of the source, a global batch in order.
  /// `step` counts every step of the run from 0: random numbers depend on it. The report is valid until the next step.
  const StepReport& step(int64_t step, const RowSource& source, std::span<const int64_t> rows, const ControlWord& mine);

  /// Updates made: the optimizer's raw iteration. A step whose samples all weigh nothing is none.
  int64_t iteration() const { return iteration_; }
  void set_iteration(int64_t iteration) { iteration_ = iteration; }
  /// The variable whose summed gradient was not finite on this rank's slice, or empty.
  std::string not_finite_variable() const;

  /// The optimizer's slots, whole and by variable: [slot][variable] for trainable variables, gathered on rank 0; elsewhere empty. All ranks call.
  std::vector<std::vector<Tensor>> gather_slots();
  /// Every rank takes its slices of these, given whole on every rank. [slot][variable in state order]; an empty tensor leaves the initial value.
  void scatter_slots(const std::vector<std::vector<Tensor>>& slots);

  /// Lines printed by layers since the last call, this rank's.
  std::vector<PrintedLine> take_printed() { return std::exchange(context_.printed, {}); }

  const Replicas& replicas() const { return options_.replicas; }
  Range hosted() const { return options_.replicas.of_rank(communicator_.rank()); }

 private:
  struct Compiled;
  Compiled& compiled(int64_t global_rows);
  void load(Compiled& compiled, const RowSource& source, std::span<const int64_t> rows);
  void lay_out_totals(const TracedStep& step);
  void take(size_t group, int64_t first, std::span<const std::byte> sums);

  Communicator& communicator_;
  Options options_;
  TraceStep trace_;
  MirroredState& state_;
  const Optimizer& optimizer_;
  StepContext context_;
  std::vector<std::unique_ptr<Reducer>> reducers_;           // by group
  std::vector<Range> slices_;                                // by group, this rank's
  std::vector<std::vector<Tensor>> slots_;                   // [group][slot], this rank's slice
  std::vector<Reducer::Take> takes_;                         // by group
  std::unique_ptr<ReplicaSum> totals_;                       // reports, active, control word
  std::vector<std::pair<std::string, size_t>> report_sizes_; // name, values
  size_t report_values_ = 0;
  std::map<int64_t, std::unique_ptr<Compiled>> programs_;    // by global rows
  int64_t iteration_ = 0;
  int64_t not_finite_element_ = -1;                          // of the first group that has one
  size_t not_finite_group_ = 0;
  StepReport report_;
  UpdateStep update_step_;
  double active_replicas_ = 0;
};

}  // namespace lockstep
