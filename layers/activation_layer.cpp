#include "layers/activation.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = activation(x), element by element or along the last axis. Same shape.
class Activation final : public Layer {
 public:
  std::string_view type() const override { return "Activation"; }
  void fields(Fields& fields) override { fields.add("activation", activation_, "the function").require(); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {activation_.apply(context.computed(inputs[0]), context.settings().semantics)};
  }

 private:
  ActivationFunction activation_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Activation>();
