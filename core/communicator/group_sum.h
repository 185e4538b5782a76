#pragma once

#include <memory>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/communicator/group.h"
#include "core/communicator/tree.h"

namespace lockstep {

/// A ReplicaSum over the memory of a node and the messages between nodes. A rank puts the sums over its largest subtrees beside a counter; everyone
/// reads all of them and adds. Two slots a rank, in turn: who comes to a run has read the one before, so one wait a run suffices.
class GroupSum final : public ReplicaSum {
 public:
  GroupSum(std::shared_ptr<Group> group, DType dtype, int64_t elements, const Replicas& replicas);

  std::span<std::byte> contribution(int local_replica) override;
  std::span<const std::byte> run() override;

 private:
  struct Slot;
  struct Root {
    TreeSum sum;
    std::vector<const std::byte*> leaves;
  };

  Slot& slot(int local_index, size_t turn) const;
  Slot& remote_slot(size_t turn) const;
  /// What the node that is `distance` after this one has to add.
  std::byte* remote_block(size_t turn, int distance) const;
  size_t roots_bytes(int rank) const;
  void exchange(size_t turn);

  std::shared_ptr<Group> group_;
  size_t bytes_;  // of one contribution
  int64_t elements_;
  Replicas replicas_;
  std::shared_ptr<Segment> segment_;
  size_t slot_stride_ = 0;
  size_t block_stride_ = 0;  // of a node's part in what crosses nodes
  std::vector<std::byte> contributions_;
  std::vector<Root> roots_;
  std::vector<const std::byte*> inputs_[2];  // of the whole sum, for each turn
  std::unique_ptr<TreeSum> sum_;
  std::vector<std::byte> result_;
  uint64_t runs_ = 0;
};

}  // namespace lockstep
