#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Weights, moving statistics and counters: this rank's private copy, the same bytes as every other rank's.
///
/// What a step changes lies flat, one array a dtype: trainable variables in the order in which backward makes their gradients, then those with
/// updates of their own (moving statistics). Gradients and updates of a replica lie in the same order, so that one reduction serves both. Each
/// variable starts at a multiple of 16 elements; what lies between is zero and stays zero.
class MirroredState {
 public:
  struct Segment {
    size_t variable = 0;  ///< in variables()
    int64_t offset = 0;   ///< elements from the start of the array
    int64_t count = 0;
  };
  struct Group {
    DType dtype = DType::f32;
    std::vector<Segment> segments;
    int64_t trainable_elements = 0;  ///< segments before this offset have gradients, those after it updates
    int64_t elements = 0;
    Tensor values;
  };

  /// `gradients` and `updates` name variables in their flat order; the others never change.
  MirroredState(std::vector<Variable> variables, std::span<const std::string> gradients, std::span<const std::string> updates);

  const std::vector<Variable>& variables() const { return variables_; }
  /// Throws X-family when there is no such variable.
  size_t index_of(std::string_view path) const;
  std::span<std::byte> memory(size_t variable);
  std::span<const std::byte> memory(size_t variable) const;
  /// A copy.
  Tensor tensor(size_t variable) const;
  void set(size_t variable, const Tensor& value);
  std::string hash(size_t variable) const { return hash_of(memory(variable)); }
  /// Of all variables, in order.
  std::string hash() const;

  std::vector<Group>& groups() { return groups_; }
  const std::vector<Group>& groups() const { return groups_; }
  /// Group and segment of a variable that a step changes; group -1 for the others.
  struct Location {
    int group = -1;
    int64_t offset = 0;
  };
  Location location(size_t variable) const { return locations_[variable]; }

 private:
  void append(std::string_view path, bool trainable);

  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<Group> groups_;
  std::vector<Location> locations_;
  std::vector<Tensor> fixed_;  // by variable; empty for those in groups
};

}  // namespace lockstep
