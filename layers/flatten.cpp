#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// (N, ...) -> (N, product of the other axes); (N) -> (N, 1).
class Flatten final : public Layer {
 public:
  std::string_view type() const override { return "Flatten"; }
  void fields(Fields& fields) override { fields.add("data_format", data_format_, "order of axes"); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Shape shape = inputs[0].shape();
    if (shape.empty()) expect_rank(context.path(), inputs[0], 2, "(rows, ...)");
    return {ops::reshape(inputs[0], {shape[0], elements_of(Shape(shape.begin() + 1, shape.end()))})};
  }

 private:
  ChannelsLast data_format_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Flatten>();
