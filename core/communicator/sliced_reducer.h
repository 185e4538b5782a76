#pragma once

#include <memory>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/communicator/group.h"
#include "core/communicator/tree.h"

namespace lockstep {

/// The slice of `rank` when `ranks` share `elements`: whole blocks of slice_block, as even as can be, the first ranks one more; the last block may be
/// short.
Range slice_of(int64_t elements, int rank, int ranks);

/// A Reducer over the memory of a node and the messages between nodes. Contributions lie in a shared segment. The owner of a slice reads that slice of
/// every contribution of its node in place; of another node it gets the sums over the largest subtrees that the node hosts, from that node's helper for
/// the slice. Updated slices are handed out in the owner's own array, or its helper's, which lies in the segment too.
class SlicedReducer final : public Reducer {
 public:
  SlicedReducer(std::shared_ptr<Group> group, DType dtype, int64_t elements, const Replicas& replicas);

  std::span<std::byte> contribution(int local_replica) override;
  Range slice(int rank) const override { return slice_of(elements_, rank, group_->placement().size()); }
  void begin() override;
  void reduce_scatter(const Take& take) override;
  void all_gather(std::span<std::byte> full) override;
  std::span<std::byte> full() override { return {full_of(group_->placement().rank), bytes_of(elements_)}; }

 private:
  struct Line;
  /// The sum over one subtree of this node, for the owners on other nodes.
  struct Root {
    TreeSum sum;
    std::vector<const std::byte*> leaves;  // contributions, from their first element
  };
  /// A slice of a rank of another node that this rank helps.
  struct Helped {
    int owner = 0;
    Range slice;
    std::byte* sums = nullptr;  // a root after the other
  };

  Line& line(int local_index) const;
  std::byte* contribution_of(int replica) const;
  size_t bytes_of(int64_t count) const { return static_cast<size_t>(count) * element_; }
  std::byte* full_of(int rank) const;
  /// The rank of this node in whose array the slice of `owner` is handed out.
  int holder_of(int owner) const;
  void plan_between_nodes();
  void exchange();
  template <class Counter>
  void wait_for_all(const char* operation, Counter Line::* counter, uint64_t value);

  std::shared_ptr<Group> group_;
  DType dtype_;
  size_t element_;
  int64_t elements_;
  Replicas replicas_;
  Range own_slice_;
  std::shared_ptr<Segment> segment_;
  std::vector<size_t> offsets_;  // of each local rank's contributions in the segment; its own array follows them
  size_t stride_ = 0;            // between the arrays of one rank

  std::vector<const std::byte*> inputs_;  // of the sum over all replicas, from the first element of this rank's slice
  std::vector<Range> input_ranges_;
  std::unique_ptr<TreeSum> sum_;
  std::vector<std::byte> sums_;

  std::vector<Root> roots_;
  std::vector<Helped> helped_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  struct Receive {
    int rank = 0;
    std::span<std::byte> bytes;
  };
  std::vector<Receive> receives_;

  uint64_t reductions_ = 0;
  uint64_t gathers_ = 0;
};

}  // namespace lockstep
