#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include <unistd.h>

#include "core/communicator/communicator.h"
#include "core/communicator/group_communicator.h"
#include "core/communicator/mapped_segment.h"
#include "core/communicator/problems.h"

namespace lockstep {

namespace {

/// What the ranks of one process have in common: letter boxes, and segments on their way from who made them to who opens them.
class Hub {
 public:
  explicit Hub(int ranks) : boxes_(static_cast<size_t>(ranks)) {}

  void post(int from, int to, std::span<const std::byte> bytes) {
    Box& box = boxes_[static_cast<size_t>(to)];
    const std::lock_guard lock(box.mutex);
    box.messages[from].emplace_back(bytes.begin(), bytes.end());
  }
  /// False when nothing has come from that rank.
  bool take(int from, int to, std::vector<std::byte>& message) {
    Box& box = boxes_[static_cast<size_t>(to)];
    const std::lock_guard lock(box.mutex);
    std::deque<std::vector<std::byte>>& messages = box.messages[from];
    if (messages.empty()) return false;
    message = std::move(messages.front());
    messages.pop_front();
    return true;
  }
  void post_failure(int to, std::string problems) {
    Box& box = boxes_[static_cast<size_t>(to)];
    const std::lock_guard lock(box.mutex);
    box.failures.push_back(std::move(problems));
  }
  std::optional<std::string> take_failure(int to) {
    Box& box = boxes_[static_cast<size_t>(to)];
    const std::lock_guard lock(box.mutex);
    if (box.failures.empty()) return std::nullopt;
    std::string problems = std::move(box.failures.front());
    box.failures.pop_front();
    return problems;
  }

  int64_t offer(std::shared_ptr<Segment> segment) {
    const std::lock_guard lock(mutex_);
    segments_[++offered_] = std::move(segment);
    return offered_;
  }
  std::shared_ptr<Segment> offered(int64_t number) {
    const std::lock_guard lock(mutex_);
    return segments_.at(number);
  }
  void withdraw(int64_t number) noexcept {
    const std::lock_guard lock(mutex_);
    segments_.erase(number);
  }

 private:
  struct Box {
    std::mutex mutex;
    std::map<int, std::deque<std::vector<std::byte>>> messages;  // by sender
    std::deque<std::string> failures;
  };
  std::deque<Box> boxes_;
  std::mutex mutex_;
  int64_t offered_ = 0;
  std::map<int64_t, std::shared_ptr<Segment>> segments_;
};

class ThreadLinks final : public Links {
 public:
  ThreadLinks(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  std::shared_ptr<Segment> create_segment(size_t bytes, SegmentKey& key) override {
    auto segment = std::make_shared<MappedSegment>(-1, bytes);
    key.number = hub_->offer(segment);
    return segment;
  }
  std::shared_ptr<Segment> open_segment(size_t, const SegmentKey& key) override { return hub_->offered(key.number); }
  void close_segment(const SegmentKey& key) noexcept override { hub_->withdraw(key.number); }

  void send(int rank, std::span<const std::byte> bytes) override { hub_->post(rank_, rank, bytes); }
  void receive(int rank, std::span<std::byte> bytes) override { waiting_.push_back({rank, bytes}); }
  bool done() override {
    // In order for each sender: a later message must not fill an earlier one's place.
    for (size_t i = 0; i < waiting_.size();) {
      const Waiting& waiting = waiting_[i];
      const bool first = std::none_of(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Waiting& other) { return other.rank == waiting.rank; });
      if (!first || !hub_->take(waiting.rank, rank_, message_)) {
        ++i;
        continue;
      }
      if (message_.size() != waiting.bytes.size()) {
        throw Error("X01", "", "rank " + std::to_string(waiting.rank) + " sent " + std::to_string(message_.size()) + " bytes; rank " + std::to_string(rank_) +
                                   " expected " + std::to_string(waiting.bytes.size()));
      }
      std::memcpy(waiting.bytes.data(), message_.data(), message_.size());
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return waiting_.empty();
  }
  std::vector<int> unfinished() const override {
    std::vector<int> ranks;
    for (const Waiting& waiting : waiting_) ranks.push_back(waiting.rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  void abandon() noexcept override { waiting_.clear(); }

  void send_failure(int rank, std::span<const std::byte> problems) noexcept override {
    try {
      hub_->post_failure(rank, {reinterpret_cast<const char*>(problems.data()), problems.size()});
    } catch (const std::bad_alloc&) {
      // The other's wait ends by its limit.
    }
  }
  std::optional<std::string> take_failure() override { return hub_->take_failure(rank_); }

 private:
  struct Waiting {
    int rank = 0;
    std::span<std::byte> bytes;
  };
  std::shared_ptr<Hub> hub_;
  int rank_;
  std::vector<Waiting> waiting_;
  std::vector<std::byte> message_;
};

std::unique_ptr<Communicator> make_communicator(const std::shared_ptr<Hub>& hub, int rank, int size, int nodes) {
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  Placement placement;
  placement.rank = rank;
  placement.nodes.resize(static_cast<size_t>(nodes));
  for (int i = 0; i < size; ++i) {
    const int node = static_cast<int>(int64_t{i} * nodes / size);
    placement.node_of.push_back(node);
    placement.nodes[static_cast<size_t>(node)].push_back(i);
    placement.hosts.push_back(nodes == 1 ? host : host + std::string(".") + std::to_string(node));
  }
  return std::make_unique<GroupCommunicator>(std::make_shared<Group>(std::move(placement), std::make_unique<ThreadLinks>(hub, rank)));
}

}  // namespace

void run_ranks_as_threads(int size, const std::function<void(Communicator&)>& rank_main, int nodes) {
  if (size < 1) throw Error("L44", "", "there must be at least 1 rank; found " + std::to_string(size));
  const auto hub = std::make_shared<Hub>(size);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run_rank = [&](int rank) {
    std::unique_ptr<Communicator> communicator;
    try {
      communicator = make_communicator(hub, rank, size, std::clamp(nodes, 1, size));
      rank_main(*communicator);
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      // What follows from it on other ranks comes later and is dropped.
      if (communicator) communicator->report_failure(Error(current_problems()));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < size; ++rank) threads.emplace_back(run_rank, rank);
    run_rank(0);
  }
  if (first) std::rethrow_exception(first);
}

std::unique_ptr<Communicator> make_single_communicator() { return make_communicator(std::make_shared<Hub>(1), 0, 1, 1); }

}  // namespace lockstep
