#include <optional>

#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// The largest value of each window of height and width. x (N, H, W, C) -> (N, OH, OW, C).
class MaxPooling2D final : public Layer {
 public:
  std::string_view type() const override { return "MaxPooling2D"; }
  void fields(Fields& fields) override {
    fields.add("pool_size", pool_size_, "height and width of the window").at_least(1);
    fields.add("strides", strides_, "cells from one window to the next; null: pool_size").at_least(1);
    fields.add("padding", padding_, "same: as many windows as cells, divided by the stride; valid: where the window fits").one_of({"valid", "same"});
    fields.add("data_format", data_format_, "order of axes");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    expect_rank(context.path(), inputs[0], 4, "(rows, height, width, channels)");
    const Symbol x = context.computed(inputs[0]);
    return {ops::max_pool2d(x, ops::Window2D::of(x.shape(), pool_size_.list(), strides_.value_or(pool_size_).list(), {1, 1}, padding_ == "same"))};
  }

 private:
  Pair pool_size_{2, 2};
  std::optional<Pair> strides_;
  std::string padding_ = "valid";
  ChannelsLast data_format_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::MaxPooling2D>();
