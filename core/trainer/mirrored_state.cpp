#include "core/trainer/mirrored_state.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

constexpr int64_t alignment_elements = 16;  // a cache line of f32

}  // namespace

MirroredState::MirroredState(std::vector<Variable> variables, std::span<const std::string> gradients, std::span<const std::string> updates) : variables_(std::move(variables)), locations_(variables_.size()), fixed_(variables_.size()) {
  for (size_t v = 0; v < variables_.size(); ++v) index_.emplace(variables_[v].path, v);
  for (const std::string& path : gradients) append(path, true);
  for (const std::string& path : updates) append(path, false);
  for (Group& group : groups_) group.values = Tensor({group.dtype, {group.elements}});
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (locations_[v].group < 0) fixed_[v] = Tensor(variables_[v].type);
  }
}

void MirroredState::append(std::string_view path, bool trainable) {
  const size_t variable = index_of(path);
  const TensorType& type = variables_[variable].type;
  auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.dtype == type.dtype; });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{});
    group->dtype = type.dtype;
  }
  const int64_t count = type.elements();
  group->segments.push_back({variable, group->elements, count});
  locations_[variable] = {static_cast<int>(group - groups_.begin()), group->elements};
  group->elements += (count + alignment_elements - 1) / alignment_elements * alignment_elements;
  if (trainable) group->trainable_elements = group->elements;
}

size_t MirroredState::index_of(std::string_view path) const {
  const auto found = index_.find(path);
  if (found == index_.end()) throw Error("X06", std::string(path), "no such variable");
  return found->second;
}

std::span<std::byte> MirroredState::memory(size_t variable) {
  const Location location = locations_[variable];
  if (location.group < 0) return fixed_[variable].bytes();
  Group& group = groups_[static_cast<size_t>(location.group)];
  return group.values.bytes().subspan(static_cast<size_t>(location.offset) * size_of(group.dtype), variables_[variable].type.bytes());
}

std::span<const std::byte> MirroredState::memory(size_t variable) const { return const_cast<MirroredState*>(this)->memory(variable); }

Tensor MirroredState::tensor(size_t variable) const {
  Tensor copy(variables_[variable].type);
  std::ranges::copy(memory(variable), copy.bytes().begin());
  return copy;
}

void MirroredState::set(size_t variable, const Tensor& value) {
  if (value.type() != variables_[variable].type) throw Error("X07", variables_[variable].path, fmt::format("is {}, given {}", variables_[variable].type.text(), value.type().text()));
  std::ranges::copy(value.bytes(), memory(variable).begin());
}

std::string MirroredState::hash() const {
  std::string all;
  for (size_t v = 0; v < variables_.size(); ++v) all += hash(v);
  return hash_of(std::as_bytes(std::span(all)));
}

}  // namespace lockstep
