#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/communicator/links.h"
#include "core/error/error.h"

namespace lockstep {

struct Board;

/// What collectives are made of, seen from one rank: shared memory with monotone counters within a node, messages between nodes, and waits that end.
/// A wait spins, then yields, then sleeps; it throws when its limit passes (P01, naming who is missing) or when a rank has failed (its problems).
class Group {
 public:
  /// Every rank of the job at once. Throws L42 when the node has no memory to share.
  Group(Placement placement, std::unique_ptr<Links> links);
  ~Group();

  const Placement& placement() const { return placement_; }
  Links& links() { return *links_; }

  void set_limit(double seconds) { limit_ = seconds; }
  double limit() const { return limit_; }
  void set_step(int64_t step);

  /// Says what this rank does, for the messages of those who wait for it. At most 31 characters are kept.
  void enter(std::string_view operation);
  /// A segment of all ranks of this node. They all call it.
  std::shared_ptr<Segment> share(size_t bytes, std::string_view operation);
  /// Until every rank of this node, or of the job, is here.
  void meet_on_node(std::string_view operation);
  void meet(std::string_view operation);
  /// Copies `bytes` from one rank of this node (by local index) to one other, or to all (-1). All ranks of the node call it with the same size; those
  /// who neither give nor take may pass no memory.
  void pass(int from, int to, std::byte* bytes, size_t size, std::string_view operation);
  /// A number from each rank of this node, by local index.
  std::vector<uint64_t> values_on_node(uint64_t mine, std::string_view operation);
  /// Until all messages started on the links are complete.
  void finish(std::string_view operation);

  /// Until counter(i) >= value for every local index i of this node.
  template <class Counter>
  void wait_for_all(std::string_view operation, const Counter& counter, uint64_t value) {
    for (int i = 0; i < placement_.peer_count(); ++i) {
      if (counter(i).load(std::memory_order_acquire) < value) wait_slowly(operation, counter, i, value);
    }
  }
  /// Until counter(i) >= value for one local index.
  template <class Counter>
  void wait_for(std::string_view operation, const Counter& counter, int i, uint64_t value) {
    if (counter(i).load(std::memory_order_acquire) >= value) return;
    Patience patience(*this);
    while (counter(i).load(std::memory_order_acquire) < value) {
      if (!patience.again()) time_out(operation, {placement_.peers()[static_cast<size_t>(i)]});
    }
  }

  /// Publishes problems to every rank of the job, unless others were published before.
  void fail(const std::vector<Problem>& problems) noexcept;
  /// Throws the problems of the first rank that failed, if one did.
  void check();

 private:
  /// One wait.
  class Patience {
   public:
    explicit Patience(Group& group) : group_(group) {}
    /// Pauses before another look. Throws when a rank has failed; false once the limit has passed.
    bool again();

   private:
    Group& group_;
    int64_t looks_ = 0;
    double waited_ = 0;
    int nap_microseconds_ = 50;
    std::chrono::steady_clock::time_point before_{};
  };

  template <class Counter>
  void wait_slowly(std::string_view operation, const Counter& counter, int i, uint64_t value) {
    Patience patience(*this);
    while (counter(i).load(std::memory_order_acquire) < value) {
      if (patience.again()) continue;
      std::vector<int> missing;
      for (int peer = 0; peer < placement_.peer_count(); ++peer) {
        if (counter(peer).load(std::memory_order_acquire) < value) missing.push_back(placement_.peers()[static_cast<size_t>(peer)]);
      }
      if (!missing.empty()) time_out(operation, missing);
    }
  }

  [[noreturn]] void time_out(std::string_view operation, const std::vector<int>& missing);
  std::string last_seen(int rank) const;
  bool publish(std::string_view problems) noexcept;
  void receive_failure();

  Placement placement_;
  std::unique_ptr<Links> links_;
  double limit_ = 60;
  int64_t step_ = 0;
  int spins_ = 0;
  std::shared_ptr<Segment> segment_;
  Board* board_ = nullptr;  // null while it is being set up
  uint64_t meetings_ = 0;
  uint64_t passes_ = 0;
  std::byte signals_[2] = {};
};

}  // namespace lockstep
