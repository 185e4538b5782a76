#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/trainer/row_source.h"

namespace lockstep {

/// What tracing needs to know of a step: the rows that this replica takes, and those of all replicas together.
struct StepShape {
  int64_t rows = 0;
  int64_t global_rows = 0;

  auto operator<=>(const StepShape&) const = default;
};

/// One replica's step, traced: what it is given, what it yields. Graphs of other shapes of the same model name the same things in the same order.
struct TracedStep {
  std::unique_ptr<Graph> graph;

  /// Filled before each run from the column with this role and name.
  struct Input {
    RowSource::Role role;
    std::string name;
    Symbol value;
  };
  std::vector<Input> inputs;

  /// A contribution to a variable's gradient; they are summed over replicas. In the order in which backward makes them. Empty when not training.
  struct Gradient {
    std::string variable;
    Symbol value;
  };
  std::vector<Gradient> gradients;

  /// A variable's value after the step as this replica sees it (moving statistics): the mean over replicas that have rows is kept; where none has
  /// any, the variable stays as it is.
  struct Update {
    std::string variable;
    Symbol value;
  };
  std::vector<Update> updates;

  /// f64 vectors that are summed over replicas and read by the host: the loss, (sum, weight) of each metric.
  struct Report {
    std::string name;
    Symbol value;
  };
  std::vector<Report> reports;

  /// The model's outputs, for prediction and for the warm-up's probes.
  struct Output {
    std::string name;
    Symbol value;
  };
  std::vector<Output> outputs;
};

/// Traces one replica's step for a shape. The trainer calls it once for each shape that it meets.
using TraceStep = std::function<TracedStep(const StepShape&)>;

}  // namespace lockstep
