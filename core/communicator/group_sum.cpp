#include "core/communicator/group_sum.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace lockstep {

/// Followed by the values, so that up to seven float64 come with the counter in one cache line.
struct GroupSum::Slot {
  std::atomic<uint64_t> runs;

  std::byte* values() { return reinterpret_cast<std::byte*>(this + 1); }
};

namespace {

constexpr size_t slot_alignment = 128;

size_t round_up(size_t size, size_t multiple) { return (size + multiple - 1) / multiple * multiple; }

}  // namespace

GroupSum::GroupSum(std::shared_ptr<Group> group, DType dtype, int64_t elements, const Replicas& replicas)
    : group_(std::move(group)), bytes_(static_cast<size_t>(elements) * size_of(dtype)), elements_(elements), replicas_(replicas) {
  const Placement& placement = group_->placement();
  if (replicas.ranks != placement.size() || replicas.count < replicas.ranks) {
    throw Error("X01", "", fmt::format("{} replicas on {} ranks can't be summed among {} ranks", replicas.count, replicas.ranks, placement.size()));
  }
  const Range mine = replicas.of_rank(placement.rank);
  contributions_.resize(static_cast<size_t>(mine.size()) * bytes_);
  result_.resize(bytes_);
  for (const Range& subtree : subtrees_inside(replicas.count, mine)) {
    std::vector<Range> leaves;
    Root root{TreeSum(dtype, {0, 1}, {{0, 1}}), {}};
    for (int64_t replica = subtree.begin; replica < subtree.end; ++replica) {
      leaves.push_back({replica, replica + 1});
      root.leaves.push_back(contributions_.data() + static_cast<size_t>(replica - mine.begin) * bytes_);
    }
    root.sum = TreeSum(dtype, subtree, leaves);
    roots_.push_back(std::move(root));
  }

  size_t largest_slot = 0;
  for (const std::vector<int>& ranks : placement.nodes) {
    size_t block = 0;
    for (const int rank : ranks) {
      block += roots_bytes(rank);
      largest_slot = std::max(largest_slot, roots_bytes(rank));
    }
    block_stride_ = std::max(block_stride_, round_up(block, slot_alignment));
  }
  slot_stride_ = round_up(sizeof(Slot) + largest_slot, slot_alignment);
  const bool one_node = placement.node_count() == 1;
  const size_t remote = one_node ? 0 : 2 * (slot_alignment + static_cast<size_t>(placement.node_count()) * block_stride_);
  segment_ = group_->share(2 * placement.peers().size() * slot_stride_ + remote, "sum");

  std::vector<Range> subtrees;
  for (int rank = 0; rank < placement.size(); ++rank) {
    const int node = placement.node_of[static_cast<size_t>(rank)];
    const int distance = (node - placement.node() + placement.node_count()) % placement.node_count();
    size_t offset = 0;
    if (distance > 0) {
      for (const int before : placement.nodes[static_cast<size_t>(node)]) {
        if (before < rank) offset += roots_bytes(before);
      }
    }
    for (const Range& subtree : subtrees_inside(replicas.count, replicas.of_rank(rank))) {
      subtrees.push_back(subtree);
      for (size_t turn = 0; turn < 2; ++turn) {
        inputs_[turn].push_back((distance == 0 ? slot(placement.local_index(rank), turn).values() : remote_block(turn, distance)) + offset);
      }
      offset += bytes_;
    }
  }
  sum_ = std::make_unique<TreeSum>(dtype, Range{0, replicas.count}, subtrees);
}

GroupSum::Slot& GroupSum::slot(int local_index, size_t turn) const {
  return *reinterpret_cast<Slot*>(segment_->bytes().data() + (2 * static_cast<size_t>(local_index) + turn) * slot_stride_);
}

GroupSum::Slot& GroupSum::remote_slot(size_t turn) const {
  const Placement& placement = group_->placement();
  const size_t size = slot_alignment + static_cast<size_t>(placement.node_count()) * block_stride_;
  return *reinterpret_cast<Slot*>(segment_->bytes().data() + 2 * placement.peers().size() * slot_stride_ + turn * size);
}

std::byte* GroupSum::remote_block(size_t turn, int distance) const {
  return reinterpret_cast<std::byte*>(&remote_slot(turn)) + slot_alignment + static_cast<size_t>(distance) * block_stride_;
}

size_t GroupSum::roots_bytes(int rank) const { return subtrees_inside(replicas_.count, replicas_.of_rank(rank)).size() * bytes_; }

std::span<std::byte> GroupSum::contribution(int local_replica) {
  return std::span(contributions_).subspan(static_cast<size_t>(local_replica) * bytes_, bytes_);
}

std::span<const std::byte> GroupSum::run() {
  const Placement& placement = group_->placement();
  group_->enter("sum");
  const size_t turn = ++runs_ % 2;
  Slot& mine = slot(placement.local_index(), turn);
  std::byte* values = mine.values();
  for (Root& root : roots_) {
    const std::byte* sum = root.sum.run(root.leaves.data(), 0, elements_, values);
    if (sum != values) std::memcpy(values, sum, bytes_);
    values += bytes_;
  }
  mine.runs.store(runs_, std::memory_order_release);

  const auto arrived = [this, turn](int i) -> auto& { return slot(i, turn).runs; };
  if (placement.node_count() == 1) {
    group_->wait_for_all("sum", arrived, runs_);
  } else if (placement.local_index() == 0) {
    group_->wait_for_all("sum", arrived, runs_);
    exchange(turn);
    remote_slot(turn).runs.store(runs_, std::memory_order_release);
  } else {
    group_->wait_for("sum", [this, turn](int) -> auto& { return remote_slot(turn).runs; }, 0, runs_);
  }
  return {sum_->run(inputs_[turn].data(), 0, elements_, result_.data()), bytes_};
}

/// Every node's part to every node, in a logarithm of rounds: in each, what one has so far goes to the node `distance` before.
void GroupSum::exchange(size_t turn) {
  const Placement& placement = group_->placement();
  const int count = placement.node_count();
  std::byte* own = remote_block(turn, 0);
  for (const int rank : placement.peers()) {
    const size_t size = roots_bytes(rank);
    std::memcpy(own, slot(placement.local_index(rank), turn).values(), size);
    own += size;
  }
  const auto leader = [&](int node) { return placement.nodes[static_cast<size_t>((node + count) % count)].front(); };
  for (int distance = 1; distance < count; distance *= 2) {
    const size_t size = static_cast<size_t>(std::min(distance, count - distance)) * block_stride_;
    group_->links().send(leader(placement.node() - distance), {remote_block(turn, 0), size});
    group_->links().receive(leader(placement.node() + distance), {remote_block(turn, distance), size});
    group_->finish("sum");
  }
}

}  // namespace lockstep
