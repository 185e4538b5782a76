#include "core/communicator/group.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include "core/communicator/board.h"
#include "core/communicator/copy.h"
#include "core/communicator/problems.h"

namespace lockstep {

namespace {

/// Bytes of a failure that crosses nodes: small enough to be sent without the receiver's help.
constexpr size_t message_limit = 3500;

/// How long a wait keeps the processor to itself, and how long it only offers it to others, before it sleeps.
constexpr int spins_alone = 2000;
constexpr int spins_crowded = 20;
constexpr double yielding_seconds = 0.002;
constexpr int longest_nap_microseconds = 1000;
/// A waiter that was itself stopped for longer doesn't blame the others for that time.
constexpr double longest_look_seconds = 1;

/// Tells the processor that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t most = 16;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() <= most) return fmt::format("ranks {}", fmt::join(ranks, ", "));
  return fmt::format("ranks {} and {} more", fmt::join(ranks.begin(), ranks.begin() + most, ", "), ranks.size() - most);
}

}  // namespace

bool Group::Patience::again() {
  group_.check();
  if (++looks_ <= group_.spins_) {
    relax();
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (looks_ > group_.spins_ + 1) waited_ += std::min(std::chrono::duration<double>(now - before_).count(), longest_look_seconds);
  before_ = now;
  if (waited_ > group_.limit_) return false;
  if (looks_ % 16 == 0 || waited_ > yielding_seconds) group_.receive_failure();
  if (waited_ <= yielding_seconds) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(nap_microseconds_));
    nap_microseconds_ = std::min(nap_microseconds_ * 2, longest_nap_microseconds);
  }
  return true;
}

Group::Group(Placement placement, std::unique_ptr<Links> links) : placement_(std::move(placement)), links_(std::move(links)) {
  const unsigned processors = std::thread::hardware_concurrency();
  spins_ = placement_.peer_count() <= static_cast<int>(processors) ? spins_alone : spins_crowded;
  segment_ = share(Board::bytes(placement_.peer_count()), "start");
}

Group::~Group() = default;

void Group::set_step(int64_t step) {
  step_ = step;
  board_->line(placement_.local_index()).step.store(step, std::memory_order_relaxed);
}

void Group::enter(std::string_view operation) {
  BoardLine& line = board_->line(placement_.local_index());
  std::array<uint64_t, 4> words{};
  std::memcpy(words.data(), operation.data(), std::min(operation.size(), sizeof(words) - 1));
  for (size_t i = 0; i < words.size(); ++i) line.operation[i].store(words[i], std::memory_order_relaxed);
}

std::shared_ptr<Segment> Group::share(size_t bytes, std::string_view operation) {
  SegmentKey key;
  const auto key_bytes = std::as_writable_bytes(std::span(&key, 1));
  std::shared_ptr<Segment> segment;
  try {
    if (placement_.local_index() == 0) {
      segment = links_->create_segment(bytes, key);
      for (const int rank : placement_.peers()) {
        if (rank != placement_.rank) links_->send(rank, key_bytes);
      }
      finish(operation);
    } else {
      links_->receive(placement_.peers().front(), key_bytes);
      finish(operation);
      segment = links_->open_segment(bytes, key);
    }
  } catch (...) {
    if (board_ != nullptr) fail(current_problems());
    throw;
  }
  // The first segment is the board itself.
  if (board_ == nullptr) board_ = reinterpret_cast<Board*>(segment->bytes().data());
  meet_on_node(operation);
  if (placement_.local_index() == 0) links_->close_segment(key);
  return segment;
}

void Group::meet_on_node(std::string_view operation) {
  enter(operation);
  ++meetings_;
  board_->line(placement_.local_index()).arrived.store(meetings_, std::memory_order_release);
  wait_for_all(operation, [this](int i) -> auto& { return board_->line(i).arrived; }, meetings_);
}

void Group::meet(std::string_view operation) {
  if (placement_.node_count() == 1) return meet_on_node(operation);
  const auto arrived = [this](int i) -> auto& { return board_->line(i).arrived; };
  const auto released = [this](int i) -> auto& { return board_->line(i).released; };
  enter(operation);
  ++meetings_;
  arrived(placement_.local_index()).store(meetings_, std::memory_order_release);
  if (placement_.local_index() != 0) return wait_for(operation, released, 0, meetings_);

  wait_for_all(operation, arrived, meetings_);
  // Dissemination: after round k every node has heard, perhaps through others, of the 2^(k+1) - 1 nodes before it.
  const int count = placement_.node_count();
  for (int distance = 1; distance < count; distance *= 2) {
    links_->send(placement_.nodes[static_cast<size_t>((placement_.node() + distance) % count)].front(), {&signals_[0], 1});
    links_->receive(placement_.nodes[static_cast<size_t>((placement_.node() - distance + count) % count)].front(), {&signals_[1], 1});
    finish(operation);
  }
  released(0).store(meetings_, std::memory_order_release);
}

void Group::pass(int from, int to, std::byte* bytes, size_t size, std::string_view operation) {
  enter(operation);
  const int me = placement_.local_index();
  const auto published = [this](int i) -> auto& { return board_->line(i).published; };
  const auto passed = [this](int i) -> auto& { return board_->line(i).passed; };
  for (size_t begin = 0; begin < size; begin += Board::pass_bytes) {
    const size_t part = std::min(Board::pass_bytes, size - begin);
    const uint64_t number = ++passes_;
    std::byte* buffer = board_->passes[number % 2];
    if (me == from) {
      // The buffer was last used two passes ago.
      if (number > 2) wait_for_all(operation, passed, number - 2);
      copy_bytes(buffer, bytes + begin, part);
      published(me).store(number, std::memory_order_release);
    } else if (to < 0 || me == to) {
      wait_for(operation, published, from, number);
      copy_bytes(bytes + begin, buffer, part);
    }
    passed(me).store(number, std::memory_order_release);
  }
}

std::vector<uint64_t> Group::values_on_node(uint64_t mine, std::string_view operation) {
  board_->line(placement_.local_index()).value.store(mine, std::memory_order_relaxed);
  meet_on_node(operation);
  std::vector<uint64_t> values(static_cast<size_t>(placement_.peer_count()));
  for (int i = 0; i < placement_.peer_count(); ++i) values[static_cast<size_t>(i)] = board_->line(i).value.load(std::memory_order_relaxed);
  // So that nobody's next value comes before everyone has read this one.
  meet_on_node(operation);
  return values;
}

void Group::finish(std::string_view operation) {
  try {
    if (links_->done()) return;
    Patience patience(*this);
    while (!links_->done()) {
      if (patience.again()) continue;
      const std::vector<int> missing = links_->unfinished();
      if (!missing.empty()) time_out(operation, missing);
    }
  } catch (...) {
    links_->abandon();
    throw;
  }
}

void Group::fail(const std::vector<Problem>& problems) noexcept {
  try {
    if (board_ == nullptr || !publish(pack(problems, FailureSlot::capacity))) return;
    if (placement_.node_count() == 1) return;
    const std::string message = pack(problems, message_limit);
    for (int rank = 0; rank < placement_.size(); ++rank) {
      if (!placement_.on_this_node(rank)) links_->send_failure(rank, std::as_bytes(std::span(message)));
    }
  } catch (...) {
    // Out of memory: the others' waits end by their limit.
  }
}

void Group::check() {
  if (board_ == nullptr || board_->failure.state.load(std::memory_order_acquire) != FailureSlot::published) return;
  throw Error(unpack({board_->failure.problems, board_->failure.size}));
}

/// False when another failure was there before.
bool Group::publish(std::string_view problems) noexcept {
  FailureSlot& slot = board_->failure;
  uint32_t expected = FailureSlot::empty;
  if (!slot.state.compare_exchange_strong(expected, FailureSlot::being_written)) return false;
  slot.size = static_cast<uint32_t>(std::min(problems.size(), FailureSlot::capacity));
  std::memcpy(slot.problems, problems.data(), slot.size);
  slot.state.store(FailureSlot::published, std::memory_order_release);
  return true;
}

void Group::receive_failure() {
  if (placement_.node_count() == 1 || board_ == nullptr) return;
  if (const std::optional<std::string> problems = links_->take_failure()) publish(*problems);
}

std::string Group::last_seen(int rank) const {
  if (!placement_.on_this_node(rank) || board_ == nullptr) return {};
  const BoardLine& line = board_->line(placement_.local_index(rank));
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = line.operation[i].load(std::memory_order_relaxed);
  char text[sizeof(words) + 1] = {};
  std::memcpy(text, words.data(), sizeof(words));
  if (text[0] == '\0') return {};
  const int64_t step = line.step.load(std::memory_order_relaxed);
  return fmt::format("; rank {} was last in '{}'{}", rank, text, step > 0 ? fmt::format(" of step {}", step) : "");
}

void Group::time_out(std::string_view operation, const std::vector<int>& missing) {
  std::string message = fmt::format("rank {} waited {:g} s in '{}'{} for {}", placement_.rank, limit_, operation,
                                    step_ > 0 ? fmt::format(" of step {}", step_) : "", ranks_text(missing));
  for (size_t i = 0; i < std::min<size_t>(missing.size(), 4); ++i) message += last_seen(missing[i]);
  message += "; start the job again, or raise watchdog.limit_seconds if it was only slow";
  const std::vector<Problem> problems{{"P01", "", message, ""}};
  fail(problems);
  check();
  throw Error(problems);
}

}  // namespace lockstep
