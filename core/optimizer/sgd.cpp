#include "core/optimizer/element.h"
#include "core/optimizer/optimizer.h"

namespace lockstep {

namespace {

/// v = momentum v - rate g; w += v, or with nesterov w += momentum v - rate g. Without momentum: w -= rate g.
/// Keras: optimizers.SGD. A momentum of 0 has no slots in Keras 3, and zero ones in Keras 2.
template <class T, bool with_momentum, bool nesterov>
struct SgdElement {
  T* weights;
  const T* gradients;
  T* velocities;  // only with momentum
  GradientRule rule;
  float momentum;

  LOCKSTEP_HD void operator()(int64_t i) const {
    using C = ComputeType<T>;
    const C w = rule.decayed(static_cast<C>(weights[i]));
    const C step = -static_cast<C>(rule.learning_rate) * rule.clipped(static_cast<C>(gradients[i]));
    if constexpr (!with_momentum) {
      weights[i] = T(w + step);
    } else {
      const C v = static_cast<C>(velocities[i]) * static_cast<C>(momentum) + step;
      velocities[i] = T(v);
      weights[i] = T(nesterov ? w + (v * static_cast<C>(momentum) + step) : w + v);
    }
  }
};

class Sgd final : public Optimizer {
 public:
  Sgd() {
    name = "sgd";
    learning_rate = make_schedule(0.01);
  }
  std::string_view type() const override { return "SGD"; }
  void fields(Fields& fields) override {
    fields.add("momentum", momentum_, "How much of the last step is kept.").at_least(0).at_most(1);
    fields.add("nesterov", nesterov_, "Nesterov's form of momentum.");
  }
  std::vector<std::string> slots() const override {
    if (momentum_ == 0 && semantics == OptimizerSemantics::keras_3) return {};
    return {"momentums"};
  }
  void update(const UpdateRun& run, const UpdateStep& step) const override {
    const GradientRule rule = GradientRule::of(*this, step);
    const auto momentum = static_cast<float>(momentum_);
    const auto launch_as = [&]<class T, bool with_momentum, bool nesterov>(Tag<T>, std::bool_constant<with_momentum>, std::bool_constant<nesterov>) {
      T* velocities = with_momentum ? static_cast<T*>(run.slots[0]) : nullptr;
      launch_elements(run.count, SgdElement<T, with_momentum, nesterov>{static_cast<T*>(run.weights), static_cast<const T*>(run.gradients), velocities, rule, momentum});
    };
    visit_floating(run.dtype, [&](auto tag) {
      if (momentum_ == 0) {
        launch_as(tag, std::false_type{}, std::false_type{});
      } else if (nesterov_) {
        launch_as(tag, std::true_type{}, std::true_type{});
      } else {
        launch_as(tag, std::true_type{}, std::false_type{});
      }
    });
  }

 private:
  double momentum_ = 0;
  bool nesterov_ = false;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd() { return std::make_unique<Sgd>(); }

}  // namespace lockstep
