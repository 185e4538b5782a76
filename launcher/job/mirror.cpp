#include "launcher/job/mirror.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

void broadcast_state(Communicator& communicator, MirroredState& state) {
  if (communicator.size() == 1) return;
  for (MirroredState::Group& group : state.groups()) communicator.broadcast(group.values.bytes(), 0, "broadcasting the weights");
  for (size_t v = 0; v < state.variables().size(); ++v) {
    if (state.location(v).group < 0) communicator.broadcast(state.memory(v), 0, "broadcasting the weights");
  }
}

std::vector<int> odd_ranks(const std::vector<std::string>& texts) {
  const auto votes = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text); };
  const std::string* most = &texts.front();
  for (const std::string& text : texts) {
    if (votes(text) > votes(*most)) most = &text;
  }
  std::vector<int> odd;
  for (size_t r = 0; r < texts.size(); ++r) {
    if (texts[r] != *most) odd.push_back(static_cast<int>(r));
  }
  return odd;
}

std::string ranks_text(const std::vector<int>& ranks) { return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", ")); }

std::vector<std::string> check_mirrored(Communicator& communicator, const MirroredState& state, std::string_view when) {
  std::vector<std::string> hashes;
  std::string mine;
  for (size_t v = 0; v < state.variables().size(); ++v) {
    hashes.push_back(state.hash(v));
    mine += hashes.back();
  }
  const std::vector<std::string> all = communicator.all_gather(mine, "comparing the hashes of the weights");
  if (odd_ranks(all).empty()) return hashes;
  constexpr size_t digits = 16;
  for (size_t v = 0; v < hashes.size(); ++v) {
    std::vector<std::string> column;
    for (const std::string& rank : all) column.push_back(rank.substr(v * digits, digits));
    const std::vector<int> odd = odd_ranks(column);
    if (odd.empty()) continue;
    throw Error("P20", state.variables()[v].path, fmt::format("its value on {} differs from the other ranks' {}: the replicas are not mirrored. Nothing was saved from this state; start again, and if it comes back, look at the memory and the processor of that host ({})", ranks_text(odd), when, communicator.hosts()[static_cast<size_t>(odd.front())]));
  }
  return hashes;
}

}  // namespace lockstep
