#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Where the ranks of a job are: seen from one of them.
struct Placement {
  int rank = 0;
  std::vector<int> node_of;             // of each rank
  std::vector<std::vector<int>> nodes;  // the ranks of each node, ascending
  std::vector<std::string> hosts;       // of each rank

  int size() const { return static_cast<int>(node_of.size()); }
  int node() const { return node_of[static_cast<size_t>(rank)]; }
  int node_count() const { return static_cast<int>(nodes.size()); }
  /// The ranks of this rank's node, itself included.
  const std::vector<int>& peers() const { return nodes[static_cast<size_t>(node())]; }
  int peer_count() const { return static_cast<int>(peers().size()); }
  /// Where `of_rank` stands among the ranks of its node.
  int local_index(int of_rank) const;
  int local_index() const { return local_index(rank); }
  bool on_this_node(int of_rank) const { return node_of[static_cast<size_t>(of_rank)] == node(); }
  /// The rank of `on_node` that takes part for it in what concerns the slice of `of_rank`, which is elsewhere.
  int helper(int on_node, int of_rank) const;
};

/// Memory that ranks of one node see alike, zero at first. Freed when the last of them lets go.
class Segment {
 public:
  virtual ~Segment() = default;
  std::span<std::byte> bytes() const { return bytes_; }

 protected:
  std::span<std::byte> bytes_;
};

/// How the others of a node come by a segment.
struct SegmentKey {
  int64_t owner = 0;
  int64_t number = 0;
};

/// What joins ranks: memory within a node, messages between any two. Messages from one rank to another arrive in the order in which they were
/// started. Only the rank's own thread calls this.
class Links {
 public:
  virtual ~Links() = default;

  /// A new segment, and the key with which others open it.
  virtual std::shared_ptr<Segment> create_segment(size_t bytes, SegmentKey& key) = 0;
  virtual std::shared_ptr<Segment> open_segment(size_t bytes, const SegmentKey& key) = 0;
  /// Everyone has opened it: nothing of it outlives the ranks.
  virtual void close_segment(const SegmentKey& key) noexcept = 0;

  /// Starts a message. The bytes must stay until done() has said true.
  virtual void send(int rank, std::span<const std::byte> bytes) = 0;
  virtual void receive(int rank, std::span<std::byte> bytes) = 0;
  /// Moves messages on; true when all that were started are complete.
  virtual bool done() = 0;
  /// The ranks at the other end of messages that are not complete.
  virtual std::vector<int> unfinished() const = 0;
  /// Gives up on messages that are not complete, so that their memory can go.
  virtual void abandon() noexcept = 0;

  /// Tells a rank of another node that this rank failed. Never waits.
  virtual void send_failure(int rank, std::span<const std::byte> problems) noexcept = 0;
  /// What a rank of another node has told so, once.
  virtual std::optional<std::string> take_failure() = 0;
};

}  // namespace lockstep
