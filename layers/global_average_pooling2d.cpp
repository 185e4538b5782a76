#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// The mean over height and width. x (N, H, W, C) -> (N, C), or (N, 1, 1, C) with keepdims.
class GlobalAveragePooling2D final : public Layer {
 public:
  std::string_view type() const override { return "GlobalAveragePooling2D"; }
  void fields(Fields& fields) override {
    fields.add("data_format", data_format_, "order of axes");
    fields.add("keepdims", keepdims_, "keeps height and width, of size 1");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    expect_rank(context.path(), inputs[0], 4, "(rows, height, width, channels)");
    return {ops::mean(context.computed(inputs[0]), {1, 2}, keepdims_)};
  }

 private:
  ChannelsLast data_format_;
  bool keepdims_ = false;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::GlobalAveragePooling2D>();
