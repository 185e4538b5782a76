#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = x, for every input.
class Identity final : public Layer {
 public:
  std::string_view type() const override { return "Identity"; }
  void fields(Fields&) override {}
  std::vector<Symbol> call(LayerContext&, std::span<const Symbol> inputs) override {
    std::vector<Symbol> outputs;
    for (const Symbol x : inputs) outputs.push_back(ops::identity(x));
    return outputs;
  }
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Identity>();
