#include <cmath>

#include "core/optimizer/element.h"
#include "core/optimizer/optimizer.h"

namespace lockstep {

namespace {

/// m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= alpha m / (sqrt(v) + epsilon), or sqrt(max v) with amsgrad, where
/// alpha = rate sqrt(1 - beta_2^t) / (1 - beta_1^t), t from 1. Source: Kingma and Ba 2014, section 2, last form. Keras: optimizers.Adam.
template <class T, bool amsgrad>
struct AdamElement {
  T* weights;
  const T* gradients;
  T* momentums;
  T* velocities;
  T* velocity_hats;  // only with amsgrad
  GradientRule rule;
  float rest_1;  // 1 - beta_1
  float rest_2;
  float alpha;
  float epsilon;

  LOCKSTEP_HD void operator()(int64_t i) const {
    using C = ComputeType<T>;
    const C g = rule.clipped(static_cast<C>(gradients[i]));
    C m = static_cast<C>(momentums[i]);
    C v = static_cast<C>(velocities[i]);
    m += (g - m) * static_cast<C>(rest_1);
    v += (g * g - v) * static_cast<C>(rest_2);
    momentums[i] = T(m);
    velocities[i] = T(v);
    if constexpr (amsgrad) {
      const C hat = static_cast<C>(velocity_hats[i]);
      v = hat > v ? hat : v;
      velocity_hats[i] = T(v);
    }
    const C w = rule.decayed(static_cast<C>(weights[i]));
    weights[i] = T(w - m * static_cast<C>(alpha) / (sqrt(v) + static_cast<C>(epsilon)));
  }
};

class Adam final : public Optimizer {
 public:
  Adam() {
    name = "adam";
    learning_rate = make_schedule(0.001);
  }
  std::string_view type() const override { return "Adam"; }
  void fields(Fields& fields) override {
    fields.add("beta_1", beta_1_, "Decay of the mean of gradients.").at_least(0).at_most(1);
    fields.add("beta_2", beta_2_, "Decay of the mean of their squares.").at_least(0).at_most(1);
    fields.add("epsilon", epsilon_, "Added to the root, against division by zero.").at_least(0);
    fields.add("amsgrad", amsgrad_, "Divide by the largest mean square so far.");
  }
  std::vector<std::string> slots() const override {
    if (amsgrad_) return {"momentums", "velocities", "velocity_hats"};
    return {"momentums", "velocities"};
  }
  void update(const UpdateRun& run, const UpdateStep& step) const override {
    const GradientRule rule = GradientRule::of(*this, step);
    // Keras takes these powers in float32.
    const auto t = static_cast<float>(step.iteration + 1);
    const float power_1 = std::pow(static_cast<float>(beta_1_), t);
    const float power_2 = std::pow(static_cast<float>(beta_2_), t);
    const float alpha = rule.learning_rate * std::sqrt(1 - power_2) / (1 - power_1);
    const auto launch_as = [&]<class T, bool amsgrad>(Tag<T>, std::bool_constant<amsgrad>) {
      AdamElement<T, amsgrad> element{};
      element.weights = static_cast<T*>(run.weights);
      element.gradients = static_cast<const T*>(run.gradients);
      element.momentums = static_cast<T*>(run.slots[0]);
      element.velocities = static_cast<T*>(run.slots[1]);
      element.velocity_hats = amsgrad ? static_cast<T*>(run.slots[2]) : nullptr;
      element.rule = rule;
      element.rest_1 = static_cast<float>(1 - beta_1_);
      element.rest_2 = static_cast<float>(1 - beta_2_);
      element.alpha = alpha;
      element.epsilon = static_cast<float>(epsilon_);
      launch_elements(run.count, element);
    };
    visit_floating(run.dtype, [&](auto tag) {
      if (amsgrad_) {
        launch_as(tag, std::true_type{});
      } else {
        launch_as(tag, std::false_type{});
      }
    });
  }

 private:
  double beta_1_ = 0.9;
  double beta_2_ = 0.999;
  double epsilon_ = 1e-7;
  bool amsgrad_ = false;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam() { return std::make_unique<Adam>(); }

}  // namespace lockstep
