#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// (N, ...) -> (N, target_shape...); one axis of target_shape may be -1.
class Reshape final : public Layer {
 public:
  std::string_view type() const override { return "Reshape"; }
  void fields(Fields& fields) override { fields.add("target_shape", target_shape_, "sizes of the axes after the first; one may be -1").require().at_least(-1); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Shape from = inputs[0].shape();
    if (from.empty()) expect_rank(context.path(), inputs[0], 2, "(rows, ...)");
    const int64_t row = elements_of(Shape(from.begin() + 1, from.end()));
    // -1 is worked out from one row: with no rows at all it could not be.
    Shape target = target_shape_;
    const auto open = std::ranges::find(target, -1);
    int64_t known = 1;
    for (const int64_t size : target) known *= size == -1 ? 1 : size;
    const bool fits = open == target.end() ? known == row : known > 0 && row % known == 0 && std::count(target.begin(), target.end(), -1) == 1;
    if (!fits) throw Error("M11", context.path(), fmt::format("cannot reshape rows of {} elements, {}, to {}", row, text_of(Shape(from.begin() + 1, from.end())), text_of(target_shape_)));
    if (open != target.end()) *open = row / known;
    target.insert(target.begin(), from[0]);
    return {ops::reshape(inputs[0], target)};
  }

 private:
  std::vector<int64_t> target_shape_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Reshape>();
