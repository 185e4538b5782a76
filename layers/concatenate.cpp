#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// Inputs one after the other along an axis; their other axes have equal sizes.
class Concatenate final : public Layer {
 public:
  std::string_view type() const override { return "Concatenate"; }
  void fields(Fields& fields) override { fields.add("axis", axis_, "the axis along which inputs follow each other"); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    if (inputs.empty()) throw Error("M10", context.path(), "takes one input or more, got none");
    const int64_t axis = checked_axis(context.path(), inputs[0], axis_.index);
    if (axis == 0) throw Error("M11", context.path(), fmt::format("axis {} is the batch's; rows can't be joined", axis_.index));
    const bool floating = std::ranges::any_of(inputs, [](Symbol x) { return is_floating(x.dtype()); });
    std::vector<Symbol> parts;
    for (const Symbol x : inputs) {
      bool fits = x.shape().size() == inputs[0].shape().size();
      for (size_t i = 0; fits && i < x.shape().size(); ++i) fits = static_cast<int64_t>(i) == axis || x.shape()[i] == inputs[0].shape()[i];
      if (!fits) throw Error("M11", context.path(), fmt::format("inputs must have equal shapes apart from axis {}, got {} and {}", axis, text_of(inputs[0].shape()), text_of(x.shape())));
      parts.push_back(floating ? context.computed(x) : x);
    }
    return {ops::concatenate(parts, axis)};
  }

 private:
  Axis axis_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Concatenate>();
