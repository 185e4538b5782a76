#include "core/program/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/graph/op.h"
#include "core/ops/dense.h"

namespace lockstep {

namespace {

constexpr size_t alignment = 64;
constexpr int for_ever = std::numeric_limits<int>::max();

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// The calls that targets, kept values or effects need, in graph order.
std::vector<PlannedCall> needed_calls(const Graph& graph, const PlanRequest& request) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const int id : request.targets) needed[static_cast<size_t>(id)] = true;
  for (const int id : request.kept) needed[static_cast<size_t>(id)] = true;
  std::vector<PlannedCall> calls;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Graph::Node& node = graph.nodes()[n];
    const bool used = node.op->has_effect() || std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) { return needed[static_cast<size_t>(id)]; });
    if (!used) continue;
    for (const int id : node.inputs) needed[static_cast<size_t>(id)] = true;
    calls.push_back({node.op, node.inputs, node.outputs, node.layer});
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

/// A dense product whose only reader is a relu becomes one call.
void fuse_epilogues(std::vector<PlannedCall>& calls, const PlanRequest& request, size_t value_count) {
  std::vector<int> readers(value_count, 0);
  std::vector<int> maker(value_count, -1);
  for (const int id : request.targets) ++readers[static_cast<size_t>(id)];
  for (const int id : request.kept) ++readers[static_cast<size_t>(id)];
  for (size_t c = 0; c < calls.size(); ++c) {
    for (const int id : calls[c].inputs) ++readers[static_cast<size_t>(id)];
    for (const int id : calls[c].outputs) maker[static_cast<size_t>(id)] = static_cast<int>(c);
  }
  std::vector<bool> removed(calls.size(), false);
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!ops::is_plain_relu(*calls[c].op)) continue;
    const auto before = static_cast<size_t>(calls[c].inputs[0]);
    if (maker[before] < 0 || readers[before] != 1) continue;
    PlannedCall& product = calls[static_cast<size_t>(maker[before])];
    if (std::shared_ptr<const Op> fused = ops::fused_with_relu(*product.op)) {
      product.op = std::move(fused);
      product.outputs = calls[c].outputs;
      maker[static_cast<size_t>(product.outputs[0])] = maker[before];
      removed[c] = true;
    }
  }
  size_t kept = 0;
  for (size_t c = 0; c < calls.size(); ++c) {
    if (!removed[c]) {
      if (kept != c) calls[kept] = std::move(calls[c]);
      ++kept;
    }
  }
  calls.resize(kept);
}

/// Values that share one piece of memory.
struct Group {
  size_t bytes = 0;
  int first = for_ever;  // call that writes it; -1: before the run
  int last = -1;         // last call that reads it
  int target = -1;
  bool movable = false;  // in the arena or a target
};

class Layout {
 public:
  Layout(const Graph& graph, const PlanRequest& request, Plan& plan) : graph_(graph), request_(request), plan_(plan) {}

  void run() {
    make_groups();
    for (int c = 0; c < static_cast<int>(plan_.calls.size()); ++c) share_memory(c);
    place();
  }

 private:
  size_t root(int id) {
    auto i = static_cast<size_t>(id);
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  Group& group(int id) { return groups_[root(id)]; }

  size_t bytes_of(int id) const {
    const auto count = static_cast<int>(graph_.values().size());
    return graph_.value(id < count ? id : copy_source_[static_cast<size_t>(id - count)]).type.bytes();
  }

  void make_groups() {
    const auto graph_values = static_cast<int>(graph_.values().size());
    // A target that is no call's own result, or a second target of one value, is filled by a copy at the end.
    std::vector<int> target_of(static_cast<size_t>(graph_values), -1);
    plan_.target_values = request_.targets;
    for (size_t t = 0; t < request_.targets.size(); ++t) {
      const int id = request_.targets[t];
      if (graph_.value(id).origin == Graph::Origin::node && target_of[static_cast<size_t>(id)] < 0) {
        target_of[static_cast<size_t>(id)] = static_cast<int>(t);
        continue;
      }
      const int copy = graph_values + static_cast<int>(copy_source_.size());
      copy_source_.push_back(id);
      target_of.push_back(static_cast<int>(t));
      plan_.target_values[t] = copy;
      plan_.calls.push_back({nullptr, {id}, {copy}, {}});
    }
    const size_t count = target_of.size();
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    groups_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      groups_[i].bytes = bytes_of(static_cast<int>(i));
      groups_[i].target = target_of[i];
      groups_[i].movable = static_cast<int>(i) >= graph_values || graph_.value(static_cast<int>(i)).origin == Graph::Origin::node;
    }
    for (const int id : request_.inputs) {
      group(id).movable = true;
      group(id).first = -1;
    }
    for (int c = 0; c < static_cast<int>(plan_.calls.size()); ++c) {
      for (const int id : plan_.calls[static_cast<size_t>(c)].outputs) {
        group(id).first = c;
        group(id).last = std::max(group(id).last, c);
      }
      for (const int id : plan_.calls[static_cast<size_t>(c)].inputs) group(id).last = c;
    }
    for (const int id : request_.kept) group(id).last = for_ever;
  }

  /// Lets the call's result take the memory of an argument that nothing reads later.
  void share_memory(int c) {
    const PlannedCall& call = plan_.calls[static_cast<size_t>(c)];
    if (!call.op || call.outputs.size() != 1 || call.op->crosses_replicas()) return;
    const int output = call.outputs[0];
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const int input = call.inputs[i];
      const size_t from = root(input), to = root(output);
      if (from == to || !groups_[from].movable || groups_[from].last != c || groups_[from].target >= 0) continue;
      if (groups_[from].bytes != groups_[to].bytes) continue;
      bool every_place = true;  // the same value as another argument must allow it too
      for (size_t k = 0; k < call.inputs.size(); ++k) every_place = every_place && (root(call.inputs[k]) != from || call.op->may_overwrite(k));
      if (!every_place) continue;
      parent_[from] = to;
      groups_[to].first = std::min(groups_[to].first, groups_[from].first);
      return;
    }
  }

  /// Largest first, each at the lowest offset that is free for its whole life.
  void place() {
    const size_t count = parent_.size();
    plan_.placements.resize(count);
    std::vector<size_t> roots;
    for (size_t i = 0; i < count; ++i) {
      if (parent_[i] == i && groups_[i].movable && groups_[i].target < 0 && groups_[i].last >= 0 && groups_[i].first != for_ever) roots.push_back(i);
    }
    for (const int id : request_.inputs) {  // an input that nothing reads still needs memory to be written to
      if (group(id).last < 0) {
        group(id).last = 0;
        roots.push_back(root(id));
      }
    }
    std::stable_sort(roots.begin(), roots.end(), [&](size_t a, size_t b) { return groups_[a].bytes > groups_[b].bytes; });
    std::vector<size_t> offsets(count, 0);
    std::vector<size_t> placed;
    for (const size_t r : roots) {
      std::vector<std::pair<size_t, size_t>> taken;
      for (const size_t other : placed) {
        if (groups_[other].first <= groups_[r].last && groups_[r].first <= groups_[other].last) taken.emplace_back(offsets[other], offsets[other] + aligned(groups_[other].bytes));
      }
      std::sort(taken.begin(), taken.end());
      size_t offset = 0;
      for (const auto& [begin, end] : taken) {
        if (offset + aligned(groups_[r].bytes) <= begin) break;
        offset = std::max(offset, end);
      }
      offsets[r] = offset;
      placed.push_back(r);
      plan_.arena_bytes = std::max(plan_.arena_bytes, offset + aligned(groups_[r].bytes));
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t r = root(static_cast<int>(i));
      Placement& placement = plan_.placements[i];
      if (groups_[r].target >= 0) {
        placement = {Placement::Where::target, 0, groups_[r].target};
      } else if (!groups_[r].movable) {
        placement = {Placement::Where::outside, 0, -1};
      } else if (std::find(roots.begin(), roots.end(), r) != roots.end()) {
        placement = {Placement::Where::arena, offsets[r], -1};
      }
    }
  }

  const Graph& graph_;
  const PlanRequest& request_;
  Plan& plan_;
  std::vector<int> copy_source_;
  std::vector<size_t> parent_;
  std::vector<Group> groups_;
};

}  // namespace

Plan plan_graph(const Graph& graph, const PlanRequest& request) {
  Plan plan;
  plan.calls = needed_calls(graph, request);
  fuse_epilogues(plan.calls, request, graph.values().size());
  Layout(graph, request, plan).run();
  return plan;
}

}  // namespace lockstep
