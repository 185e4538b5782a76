#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = x in another dtype: `dtype`, which any layer has; absent, the model's compute dtype. Floats become integers by truncation.
class Cast final : public Layer {
 public:
  std::string_view type() const override { return "Cast"; }
  void fields(Fields&) override {}
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {context.computed(inputs[0])};
  }
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Cast>();
