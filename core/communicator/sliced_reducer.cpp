#include "core/communicator/sliced_reducer.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/communicator/copy.h"

namespace lockstep {

/// How far one rank is, for the others of its node. Counters of steps; they only grow.
struct alignas(128) SlicedReducer::Line {
  std::atomic<uint64_t> ready;    // contributions are complete
  std::atomic<uint64_t> reduced;  // contributions of others are no longer read
  std::atomic<uint64_t> placed;   // slices can be read from its array
  std::atomic<uint64_t> copied;   // arrays of others are no longer read
};

namespace {

constexpr size_t cache_line = 64;
constexpr size_t page = 4096;

size_t round_up(size_t size, size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

/// The largest subtrees that one node hosts, in the order in which they are sent.
std::vector<Range> subtrees_of_node(const Placement& placement, int node, const Replicas& replicas) {
  std::vector<Range> runs;
  for (const int rank : placement.nodes[static_cast<size_t>(node)]) {
    const Range run = replicas.of_rank(rank);
    if (!runs.empty() && runs.back().end == run.begin) {
      runs.back().end = run.end;
    } else {
      runs.push_back(run);
    }
  }
  std::vector<Range> subtrees;
  for (const Range& run : runs) {
    for (const Range& subtree : subtrees_inside(replicas.count, run)) subtrees.push_back(subtree);
  }
  return subtrees;
}

std::vector<Range> leaves_of(Range node) {
  std::vector<Range> leaves;
  for (int64_t i = node.begin; i < node.end; ++i) leaves.push_back({i, i + 1});
  return leaves;
}

}  // namespace

Range slice_of(int64_t elements, int rank, int ranks) {
  const int64_t blocks = (elements + slice_block - 1) / slice_block;
  const auto first_block = [&](int64_t of_rank) { return blocks / ranks * of_rank + std::min(of_rank, blocks % ranks); };
  return {std::min(elements, first_block(rank) * slice_block), std::min(elements, first_block(rank + 1) * slice_block)};
}

SlicedReducer::SlicedReducer(std::shared_ptr<Group> group, DType dtype, int64_t elements, const Replicas& replicas)
    : group_(std::move(group)),
      dtype_(dtype),
      element_(size_of(dtype)),
      elements_(elements),
      replicas_(replicas),
      own_slice_(slice_of(elements, group_->placement().rank, group_->placement().size())) {
  const Placement& placement = group_->placement();
  if (replicas.ranks != placement.size() || replicas.count < replicas.ranks) {
    throw Error("X01", "", fmt::format("{} replicas on {} ranks can't be reduced among {} ranks", replicas.count, replicas.ranks, placement.size()));
  }
  check_tree_adds(dtype);

  stride_ = round_up(bytes_of(elements), cache_line);
  size_t end = round_up(placement.peers().size() * sizeof(Line), page);
  for (const int rank : placement.peers()) {
    offsets_.push_back(end);
    end += round_up(static_cast<size_t>(replicas.of_rank(rank).size() + 1) * stride_, page);
  }
  segment_ = group_->share(end, "reducer");
  // The first to touch a page decides on which memory it is. Who gathers into an array elsewhere needs little of the one here.
  std::memset(contribution_of(static_cast<int>(replicas.of_rank(placement.rank).begin)), 0, static_cast<size_t>(replicas.of_rank(placement.rank).size()) * stride_);

  struct Input {
    Range node;
    const std::byte* values;
  };
  std::vector<Input> inputs;
  for (const int rank : placement.peers()) {
    for (const Range& leaf : leaves_of(replicas.of_rank(rank))) inputs.push_back({leaf, contribution_of(static_cast<int>(leaf.begin)) + bytes_of(own_slice_.begin)});
  }
  size_t subtrees = 0;
  for (int node = 0; node < placement.node_count(); ++node) {
    if (node != placement.node()) subtrees += subtrees_of_node(placement, node, replicas).size();
  }
  received_.resize(subtrees * bytes_of(own_slice_.size()));
  std::byte* place = received_.data();
  for (int node = 0; node < placement.node_count(); ++node) {
    if (node == placement.node()) continue;
    for (const Range& subtree : subtrees_of_node(placement, node, replicas)) {
      inputs.push_back({subtree, place});
      if (own_slice_.size() > 0) receives_.push_back({placement.helper(node, placement.rank), {place, bytes_of(own_slice_.size())}});
      place += bytes_of(own_slice_.size());
    }
  }
  std::sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) { return a.node.begin < b.node.begin; });
  for (const Input& input : inputs) {
    inputs_.push_back(input.values);
    input_ranges_.push_back(input.node);
  }
  sum_ = std::make_unique<TreeSum>(dtype_, Range{0, replicas.count}, input_ranges_);
  sums_.resize(bytes_of(std::min(own_slice_.size(), slice_block)));
  plan_between_nodes();
  // Nobody writes a contribution before its memory was cleared, nor reads one that isn't there yet.
  group_->meet_on_node("reducer");
}

void SlicedReducer::plan_between_nodes() {
  const Placement& placement = group_->placement();
  if (placement.node_count() == 1) return;
  for (const Range& subtree : subtrees_of_node(placement, placement.node(), replicas_)) {
    Root root{TreeSum(dtype_, subtree, leaves_of(subtree)), {}};
    for (int64_t replica = subtree.begin; replica < subtree.end; ++replica) root.leaves.push_back(contribution_of(static_cast<int>(replica)));
    roots_.push_back(std::move(root));
  }
  size_t size = 0;
  for (int rank = 0; rank < placement.size(); ++rank) {
    if (placement.on_this_node(rank) || placement.helper(placement.node(), rank) != placement.rank) continue;
    const Range theirs = slice(rank);
    if (theirs.size() == 0) continue;
    helped_.push_back({rank, theirs, nullptr});
    size += roots_.size() * bytes_of(theirs.size());
  }
  sent_.resize(size);
  std::byte* place = sent_.data();
  for (Helped& helped : helped_) {
    helped.sums = place;
    place += roots_.size() * bytes_of(helped.slice.size());
  }
}

SlicedReducer::Line& SlicedReducer::line(int local_index) const { return reinterpret_cast<Line*>(segment_->bytes().data())[local_index]; }

std::byte* SlicedReducer::contribution_of(int replica) const {
  const int rank = replicas_.rank_of(replica);
  const size_t offset = offsets_[static_cast<size_t>(group_->placement().local_index(rank))];
  return segment_->bytes().data() + offset + static_cast<size_t>(replica - replicas_.of_rank(rank).begin) * stride_;
}

std::span<std::byte> SlicedReducer::contribution(int local_replica) {
  return {contribution_of(static_cast<int>(replicas_.of_rank(group_->placement().rank).begin) + local_replica), bytes_of(elements_)};
}

std::byte* SlicedReducer::full_of(int rank) const {
  const size_t offset = offsets_[static_cast<size_t>(group_->placement().local_index(rank))];
  return segment_->bytes().data() + offset + static_cast<size_t>(replicas_.of_rank(rank).size()) * stride_;
}

int SlicedReducer::holder_of(int owner) const {
  const Placement& placement = group_->placement();
  return placement.on_this_node(owner) ? owner : placement.helper(placement.node(), owner);
}

template <class Counter>
void SlicedReducer::wait_for_all(const char* operation, Counter Line::* counter, uint64_t value) {
  group_->wait_for_all(operation, [this, counter](int i) -> auto& { return line(i).*counter; }, value);
}

void SlicedReducer::begin() {
  wait_for_all("gradients", &Line::reduced, reductions_);
  wait_for_all("weights", &Line::copied, gathers_);
}

void SlicedReducer::reduce_scatter(const Take& take) {
  group_->enter("gradients");
  Line& mine = line(group_->placement().local_index());
  ++reductions_;
  mine.ready.store(reductions_, std::memory_order_release);
  wait_for_all("gradients", &Line::ready, reductions_);
  if (group_->placement().node_count() > 1) exchange();
  for (int64_t first = own_slice_.begin; first < own_slice_.end; first += slice_block) {
    const int64_t count = std::min(slice_block, own_slice_.end - first);
    take(first, {sum_->run(inputs_.data(), first - own_slice_.begin, count, sums_.data()), bytes_of(count)});
  }
  mine.reduced.store(reductions_, std::memory_order_release);
}

/// Sends what this node's replicas add to slices elsewhere, and receives what others add to this rank's.
void SlicedReducer::exchange() {
  Links& links = group_->links();
  for (const Receive& receive : receives_) links.receive(receive.rank, receive.bytes);
  for (const Helped& helped : helped_) {
    const size_t size = bytes_of(helped.slice.size());
    std::byte* sums = helped.sums;
    for (Root& root : roots_) {
      // One contribution is sent from where it is.
      const std::byte* values = root.sum.run(root.leaves.data(), helped.slice.begin, helped.slice.size(), sums);
      links.send(helped.owner, {values, size});
      sums += size;
    }
  }
  group_->finish("gradients");
}

void SlicedReducer::all_gather(std::span<std::byte> full) {
  const Placement& placement = group_->placement();
  if (full.size() != bytes_of(elements_)) throw Error("X01", "", fmt::format("{} bytes to gather, {} expected", full.size(), bytes_of(elements_)));
  if (placement.size() == 1) return;
  group_->enter("weights");
  wait_for_all("weights", &Line::copied, gathers_);
  ++gathers_;

  const bool alone = placement.peer_count() == 1;
  const std::span<std::byte> own = full.subspan(bytes_of(own_slice_.begin), bytes_of(own_slice_.size()));
  const std::span<std::byte> shared = this->full();
  const bool in_place = full.data() == shared.data();
  if (!alone && !in_place) copy_bytes(shared.data() + bytes_of(own_slice_.begin), own.data(), own.size());
  if (placement.node_count() > 1) {
    Links& links = group_->links();
    for (const Helped& helped : helped_) {
      const std::span<std::byte> target = alone ? full : shared;
      links.receive(helped.owner, target.subspan(bytes_of(helped.slice.begin), bytes_of(helped.slice.size())));
    }
    for (int node = 0; node < placement.node_count() && !own.empty(); ++node) {
      if (node != placement.node()) links.send(placement.helper(node, placement.rank), own);
    }
    group_->finish("weights");
  }
  Line& mine = line(placement.local_index());
  mine.placed.store(gathers_, std::memory_order_release);
  if (!alone) {
    // Everyone starts behind itself, so that not all read the same array at once.
    for (int i = 1; i < placement.size(); ++i) {
      const int owner = (placement.rank + i) % placement.size();
      const Range theirs = slice(owner);
      if (theirs.size() == 0) continue;
      const int holder = holder_of(owner);
      // What this rank received for its node is there already.
      if (holder == placement.rank && in_place) continue;
      group_->wait_for("weights", [this](int local) -> auto& { return line(local).placed; }, placement.local_index(holder), gathers_);
      copy_bytes(full.data() + bytes_of(theirs.begin), full_of(holder) + bytes_of(theirs.begin), bytes_of(theirs.size()));
    }
  }
  mine.copied.store(gathers_, std::memory_order_release);
}

}  // namespace lockstep
