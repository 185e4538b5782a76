#include "core/communicator/group_communicator.h"

#include <algorithm>
#include <cstring>

#include "core/communicator/group_sum.h"
#include "core/communicator/sliced_reducer.h"

namespace lockstep {

namespace {

/// Bytes of a message of a long transfer: far below what an MPI count holds, and short enough that nodes pass on one while the next comes.
constexpr size_t message_bytes = size_t{1} << 20;

/// Calls visit(begin, size) for each message of a transfer.
template <class Visit>
void for_messages(size_t size, Visit&& visit) {
  for (size_t begin = 0; begin < size; begin += message_bytes) visit(begin, std::min(message_bytes, size - begin));
}

}  // namespace

void GroupCommunicator::broadcast(std::span<std::byte> bytes, int root, std::string_view operation) {
  const int nodes = placement().node_count();
  const int root_node = placement().node_of[static_cast<size_t>(root)];
  const auto giver = [&](int node) { return node == root_node ? root : placement().nodes[static_cast<size_t>(node)].front(); };
  const int my_giver = giver(placement().node());
  const int from = placement().local_index(my_giver);
  group_->enter(operation);
  for_messages(bytes.size(), [&](size_t begin, size_t size) {
    const std::span<std::byte> part = bytes.subspan(begin, size);
    if (nodes > 1 && rank() == my_giver) {
      // A binomial tree over nodes, numbered from the root's: the parent of a node is it without its lowest bit.
      const auto giver_of = [&](int number) { return giver((number + root_node) % nodes); };
      const int number = (placement().node() - root_node + nodes) % nodes;
      int lowest = 1;
      while (lowest < nodes && (number & lowest) == 0) lowest *= 2;
      if (number != 0) {
        group_->links().receive(giver_of(number - lowest), part);
        group_->finish(operation);
      }
      for (int step = lowest / 2; step > 0; step /= 2) {
        if (number + step < nodes) group_->links().send(giver_of(number + step), part);
      }
      group_->finish(operation);
    }
    group_->pass(from, -1, part.data(), size, operation);
  });
}

std::vector<std::string> GroupCommunicator::gather(std::string_view text, std::string_view operation) {
  group_->enter(operation);
  std::vector<std::string> texts;
  if (!placement().on_this_node(0)) {
    uint64_t size = text.size();
    group_->links().send(0, std::as_bytes(std::span(&size, 1)));
    group_->finish(operation);
    for_messages(text.size(), [&](size_t begin, size_t part) {
      group_->links().send(0, std::as_bytes(std::span(text)).subspan(begin, part));
      group_->finish(operation);
    });
    return texts;
  }

  const std::vector<uint64_t> sizes = group_->values_on_node(text.size(), operation);
  if (rank() == 0) {
    texts.resize(static_cast<size_t>(size()));
    texts[0] = text;
  }
  for (int i = 1; i < placement().peer_count(); ++i) {
    const size_t size = sizes[static_cast<size_t>(i)];
    std::string received(rank() == 0 ? size : 0, '\0');
    std::byte* bytes = reinterpret_cast<std::byte*>(received.data());
    // The one who gives is only read.
    if (i == placement().local_index()) bytes = reinterpret_cast<std::byte*>(const_cast<char*>(text.data()));
    group_->pass(i, 0, bytes, size, operation);
    if (rank() == 0) texts[static_cast<size_t>(placement().peers()[static_cast<size_t>(i)])] = std::move(received);
  }
  if (rank() != 0 || placement().node_count() == 1) return texts;

  std::vector<uint64_t> lengths(static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other) {
    if (!placement().on_this_node(other)) group_->links().receive(other, std::as_writable_bytes(std::span(&lengths[static_cast<size_t>(other)], 1)));
  }
  group_->finish(operation);
  for (int other = 0; other < size(); ++other) {
    if (placement().on_this_node(other)) continue;
    std::string& received = texts[static_cast<size_t>(other)];
    received.resize(lengths[static_cast<size_t>(other)]);
    for_messages(received.size(), [&](size_t begin, size_t part) {
      group_->links().receive(other, std::as_writable_bytes(std::span(received)).subspan(begin, part));
      group_->finish(operation);
    });
  }
  return texts;
}

std::vector<std::string> GroupCommunicator::all_gather(std::string_view text, std::string_view operation) {
  std::vector<std::string> texts = gather(text, operation);
  std::vector<uint64_t> sizes(static_cast<size_t>(size()));
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) {
    sizes[i] = texts[i].size();
    joined += texts[i];
  }
  broadcast(std::as_writable_bytes(std::span(sizes)), 0, operation);
  size_t total = 0;
  for (const uint64_t size : sizes) total += size;
  joined.resize(total);
  broadcast(std::as_writable_bytes(std::span(joined)), 0, operation);
  if (rank() == 0) return texts;
  size_t begin = 0;
  for (const uint64_t size : sizes) {
    texts.push_back(joined.substr(begin, size));
    begin += size;
  }
  return texts;
}

std::unique_ptr<Reducer> GroupCommunicator::make_reducer(DType dtype, int64_t elements, const Replicas& replicas) {
  return std::make_unique<SlicedReducer>(group_, dtype, elements, replicas);
}

std::unique_ptr<ReplicaSum> GroupCommunicator::make_replica_sum(DType dtype, int64_t elements, const Replicas& replicas) {
  return std::make_unique<GroupSum>(group_, dtype, elements, replicas);
}

}  // namespace lockstep
