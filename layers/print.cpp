#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = x. Each replica prints its line in the warm-up and every `every_steps` steps; {replica}, {replicas}, {rank} and {step} are filled in.
class Print final : public Layer {
 public:
  std::string_view type() const override { return "Print"; }
  void fields(Fields& fields) override {
    fields.add("message", message_, "the line; {replica}, {replicas}, {rank} and {step} are filled in").require();
    fields.add("every_steps", every_steps_, "steps from one line to the next").at_least(1);
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {ops::print(inputs[0], message_, every_steps_)};
  }

 private:
  std::string message_;
  int64_t every_steps_ = 1;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Print>();
