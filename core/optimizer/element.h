#pragma once

#include <limits>

#include "core/ops/launch.h"
#include "core/optimizer/optimizer.h"
#include "core/tensor/dtype.h"

namespace lockstep {

/// What every optimizer does to a gradient and a weight before its own formula, as Keras's base class: clip by value, decay.
struct GradientRule {
  float learning_rate = 0;
  float clip = std::numeric_limits<float>::infinity();
  float decay = 0;  ///< weight_decay times the learning rate

  static GradientRule of(const Optimizer& optimizer, const UpdateStep& step) {
    GradientRule rule;
    rule.learning_rate = static_cast<float>(step.learning_rate);
    if (optimizer.clipvalue) rule.clip = static_cast<float>(*optimizer.clipvalue);
    rule.decay = static_cast<float>(optimizer.weight_decay.value_or(0)) * rule.learning_rate;
    return rule;
  }

  template <class C>
  LOCKSTEP_HD C clipped(C gradient) const {
    const C limit = static_cast<C>(clip);
    return gradient > limit ? limit : (gradient < -limit ? -limit : gradient);
  }
  template <class C>
  LOCKSTEP_HD C decayed(C weight) const {
    return weight - weight * static_cast<C>(decay);
  }
};

template <class Element>
void launch_elements(int64_t count, Element element) {
  launch(KernelArguments{}, count, element);
}

}  // namespace lockstep
