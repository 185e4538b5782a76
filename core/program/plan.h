#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/graph/graph.h"

namespace lockstep {

/// A call of the compiled list: an op on values. No op: a copy of the one input to the one output.
struct PlannedCall {
  std::shared_ptr<const Op> op;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string layer;
};

/// Where a value lives while a program runs.
struct Placement {
  enum class Where { unused, arena, target, outside };
  Where where = Where::unused;
  size_t offset = 0;  ///< in the arena
  int target = -1;    ///< which target's memory
};

/// What is asked of a plan: values that end up in memory given from outside (each target once, in this order), values that stay valid after the run,
/// and values that are written before it (inputs).
struct PlanRequest {
  std::vector<int> targets;
  std::vector<int> kept;
  std::vector<int> inputs;
};

/// The order of calls and the memory of one replica's graph.
struct Plan {
  std::vector<PlannedCall> calls;
  std::vector<Placement> placements;  ///< by value id; ids past the graph's own are copies
  std::vector<int> target_values;     ///< by target: the value id that is written to it
  size_t arena_bytes = 0;
};

/// Drops what nothing needs, fuses epilogues into products, lets results take the memory of arguments that end with them, and lays out one arena in
/// which memory is reused by lifetime. A pure function of the graph.
Plan plan_graph(const Graph& graph, const PlanRequest& request);

}  // namespace lockstep
