#include <cmath>
#include <limits>

#include "core/ops/dense.h"
#include "core/ops/elementwise.h"
#include "core/ops/ops.h"

/// The activations of Keras 3 (keras.activations). Formula and derivative of each; at a kink the derivative is that of the flatter side.
namespace lockstep::ops {

namespace {

template <class C>
LOCKSTEP_HD C sigmoid_of(C x) {
  return 1 / (1 + std::exp(-x));
}
template <class C>
LOCKSTEP_HD C softplus_of(C x) {
  return (x > 0 ? x : C(0)) + std::log1p(std::exp(-std::fabs(x)));
}
template <class C>
LOCKSTEP_HD C clipped(C x, C low, C high) {
  return x < low ? low : (x > high ? high : x);
}

/// max(x, 0); NaN stays. Derivative 1 where the result is above 0: x need not be kept.
struct Relu {
  static constexpr std::string_view name = "relu", gradient_name = "relu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x > 0 || x != x ? x : C(0); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return C(y > 0); }
};

/// min(max(x, 0), 6).
struct Relu6 {
  static constexpr std::string_view name = "relu6", gradient_name = "relu6_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return clipped(x, C(0), C(6)); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return C(y > 0 && y < 6); }
};

/// x above the threshold (at most max_value, at least 0 if there is one), else negative_slope (x - threshold). Keras: activations.relu, layers.ReLU.
struct FullRelu {
  static constexpr std::string_view name = "relu_full", gradient_name = "relu_full_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double negative_slope = 0;
  double max_value = std::numeric_limits<double>::infinity();
  double threshold = 0;
  template <class C>
  LOCKSTEP_HD C value(C x) const {
    if (x > C(threshold)) return has_max() ? clipped(x, C(0), C(max_value)) : x;
    return x < C(threshold) ? C(negative_slope) * (x - C(threshold)) : (x != x ? x : C(0));
  }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    if (x > C(threshold)) return C(!has_max() || (x > 0 && x < C(max_value)));
    return C(negative_slope);
  }
  LOCKSTEP_HD bool has_max() const { return max_value < std::numeric_limits<double>::infinity(); }
};

/// x if x > 0, else alpha (exp(x) - 1). Source: Clevert et al. 2015.
struct Elu {
  static constexpr std::string_view name = "elu", gradient_name = "elu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double alpha = 1;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x > 0 ? x : C(alpha) * std::expm1(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x > 0 ? C(1) : C(alpha) * std::exp(x); }
};

/// scale * x if x > 0, else scale * alpha * (exp(x) - 1). Source: Klambauer et al. 2017, equation 2.
struct Selu {
  static constexpr std::string_view name = "selu", gradient_name = "selu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  static constexpr double scale = 1.0507009873554804934;
  static constexpr double alpha = 1.6732632423543772848;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return C(scale) * (x > 0 ? x : C(alpha) * std::expm1(x)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(scale) * (x > 0 ? C(1) : C(alpha) * std::exp(x)); }
};

/// x if x > 0, else alpha (exp(x / alpha) - 1). Source: Barron 2017.
struct Celu {
  static constexpr std::string_view name = "celu", gradient_name = "celu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double alpha = 1;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x > 0 ? x : C(alpha) * std::expm1(x / C(alpha)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x > 0 ? C(1) : std::exp(x / C(alpha)); }
};

/// x Phi(x), Phi the standard normal distribution function. Source: Hendrycks and Gimpel 2016.
struct Gelu {
  static constexpr std::string_view name = "gelu", gradient_name = "gelu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  static constexpr double sqrt_half = 0.70710678118654752440;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return C(0.5) * x * (1 + std::erf(x * C(sqrt_half))); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    constexpr double density = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    return C(0.5) * (1 + std::erf(x * C(sqrt_half))) + x * C(density) * std::exp(C(-0.5) * x * x);
  }
};

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Source: Hendrycks and Gimpel 2016.
struct GeluByTanh {
  static constexpr std::string_view name = "gelu_by_tanh", gradient_name = "gelu_by_tanh_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  static constexpr double factor = 0.79788456080286535588;  // sqrt(2 / pi)
  template <class C>
  LOCKSTEP_HD C inner(C x) const { return std::tanh(C(factor) * (x + C(0.044715) * x * x * x)); }
  template <class C>
  LOCKSTEP_HD C value(C x) const { return C(0.5) * x * (1 + inner(x)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    const C t = inner(x);
    return C(0.5) * (1 + t) + C(0.5) * x * (1 - t * t) * C(factor) * (1 + C(3 * 0.044715) * x * x);
  }
};

/// x sigmoid(x).
struct Silu {
  static constexpr std::string_view name = "silu", gradient_name = "silu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x * sigmoid_of(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    const C s = sigmoid_of(x);
    return s * (1 + x * (1 - s));
  }
};

/// x tanh(softplus(x)). Source: Misra 2019.
struct Mish {
  static constexpr std::string_view name = "mish", gradient_name = "mish_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x * std::tanh(softplus_of(x)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    const C t = std::tanh(softplus_of(x));
    return t + x * (1 - t * t) * sigmoid_of(x);
  }
};

/// log(1 + exp(x)).
struct Softplus {
  static constexpr std::string_view name = "softplus", gradient_name = "softplus_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return softplus_of(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return sigmoid_of(x); }
};

/// x / (1 + |x|).
struct Softsign {
  static constexpr std::string_view name = "softsign", gradient_name = "softsign_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x / (1 + std::fabs(x)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    const C d = 1 + std::fabs(x);
    return 1 / (d * d);
  }
};

/// log(sigmoid(x)) = -softplus(-x).
struct LogSigmoid {
  static constexpr std::string_view name = "log_sigmoid", gradient_name = "log_sigmoid_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return -softplus_of(-x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return sigmoid_of(-x); }
};

/// relu6(x + 3) / 6.
struct HardSigmoid {
  static constexpr std::string_view name = "hard_sigmoid", gradient_name = "hard_sigmoid_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return clipped(x + 3, C(0), C(6)) / 6; }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x > -3 && x < 3 ? C(1) / 6 : C(0); }
};

/// clip(0.2 x + 0.5, 0, 1). Keras 2's activations.hard_sigmoid.
struct HardSigmoidKeras2 {
  static constexpr std::string_view name = "hard_sigmoid_keras2", gradient_name = "hard_sigmoid_keras2_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return clipped(C(0.2) * x + C(0.5), C(0), C(1)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x > C(-2.5) && x < C(2.5) ? C(0.2) : C(0); }
};

/// x hard_sigmoid(x).
struct HardSilu {
  static constexpr std::string_view name = "hard_silu", gradient_name = "hard_silu_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x * (clipped(x + 3, C(0), C(6)) / 6); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x <= -3 ? C(0) : (x >= 3 ? C(1) : (2 * x + 3) / 6); }
};

/// clip(x, -1, 1).
struct HardTanh {
  static constexpr std::string_view name = "hard_tanh", gradient_name = "hard_tanh_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return clipped(x, C(-1), C(1)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(x > -1 && x < 1); }
};

/// x where |x| > threshold, else 0.
struct HardShrink {
  static constexpr std::string_view name = "hard_shrink", gradient_name = "hard_shrink_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double threshold = 0.5;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::fabs(x) <= C(threshold) ? C(0) : x; }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(std::fabs(x) > C(threshold)); }
};

/// x moved towards 0 by the threshold, 0 when it is nearer than that.
struct SoftShrink {
  static constexpr std::string_view name = "soft_shrink", gradient_name = "soft_shrink_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double threshold = 0.5;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::fabs(x) <= C(threshold) ? C(0) : (x > 0 ? x - C(threshold) : x + C(threshold)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(std::fabs(x) > C(threshold)); }
};

/// x - tanh(x).
struct TanhShrink {
  static constexpr std::string_view name = "tanh_shrink", gradient_name = "tanh_shrink_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x - std::tanh(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const {
    const C t = std::tanh(x);
    return t * t;
  }
};

/// x where x > threshold, else default_value.
struct Threshold {
  static constexpr std::string_view name = "threshold", gradient_name = "threshold_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double threshold = 0;
  double default_value = 0;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x > C(threshold) ? x : C(default_value); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(x > C(threshold)); }
};

/// (x + sqrt(x^2 + b)) / 2. Source: Barron 2021.
struct Squareplus {
  static constexpr std::string_view name = "squareplus", gradient_name = "squareplus_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  double b = 4;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return C(0.5) * (x + std::sqrt(x * x + C(b))); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(0.5) * (1 + x / std::sqrt(x * x + C(b))); }
};

/// 0 up to -1, (x + 1)^2 / 4 up to 1, x beyond.
struct SparsePlus {
  static constexpr std::string_view name = "sparse_plus", gradient_name = "sparse_plus_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x <= -1 ? C(0) : (x < 1 ? C(0.25) * (x + 1) * (x + 1) : x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return clipped(C(0.5) * (x + 1), C(0), C(1)); }
};

/// clip((x + 1) / 2, 0, 1).
struct SparseSigmoid {
  static constexpr std::string_view name = "sparse_sigmoid", gradient_name = "sparse_sigmoid_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return clipped(C(0.5) * (x + 1), C(0), C(1)); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return x > -1 && x < 1 ? C(0.5) : C(0); }
};

}  // namespace

bool is_plain_relu(const Op& op) { return op.name() == Relu::name; }

Symbol relu(Symbol x, double negative_slope, std::optional<double> max_value, double threshold) {
  if (negative_slope == 0 && threshold == 0) {
    if (!max_value) return apply(Relu{}, x);
    if (*max_value == 6) return relu6(x);
  }
  FullRelu formula{negative_slope, std::numeric_limits<double>::infinity(), threshold};
  if (max_value) formula.max_value = *max_value;
  return apply(formula, x);
}

Symbol relu6(Symbol x) { return apply(Relu6{}, x); }
Symbol elu(Symbol x, double alpha) { return apply(Elu{alpha}, x); }
Symbol selu(Symbol x) { return apply(Selu{}, x); }
Symbol celu(Symbol x, double alpha) { return apply(Celu{alpha}, x); }
Symbol gelu(Symbol x, bool approximate) { return approximate ? apply(GeluByTanh{}, x) : apply(Gelu{}, x); }
Symbol silu(Symbol x) { return apply(Silu{}, x); }
Symbol mish(Symbol x) { return apply(Mish{}, x); }
Symbol softplus(Symbol x) { return apply(Softplus{}, x); }
Symbol softsign(Symbol x) { return apply(Softsign{}, x); }
Symbol log_sigmoid(Symbol x) { return apply(LogSigmoid{}, x); }
Symbol hard_sigmoid(Symbol x) { return apply(HardSigmoid{}, x); }
Symbol hard_sigmoid_keras2(Symbol x) { return apply(HardSigmoidKeras2{}, x); }
Symbol hard_silu(Symbol x) { return apply(HardSilu{}, x); }
Symbol hard_tanh(Symbol x) { return apply(HardTanh{}, x); }
Symbol hard_shrink(Symbol x, double threshold) { return apply(HardShrink{threshold}, x); }
Symbol soft_shrink(Symbol x, double threshold) { return apply(SoftShrink{threshold}, x); }
Symbol tanh_shrink(Symbol x) { return apply(TanhShrink{}, x); }
Symbol threshold(Symbol x, double threshold, double default_value) { return apply(Threshold{threshold, default_value}, x); }
Symbol squareplus(Symbol x, double b) { return apply(Squareplus{b}, x); }
Symbol sparse_plus(Symbol x) { return apply(SparsePlus{}, x); }
Symbol sparse_sigmoid(Symbol x) { return apply(SparseSigmoid{}, x); }

Symbol glu(Symbol x, int64_t axis) {
  axis = axis_of("glu", axis, x);
  const int64_t size = x.shape()[static_cast<size_t>(axis)];
  if (size % 2 != 0) throw shape_error(x, "glu", "axis " + std::to_string(axis) + " of shape " + text_of(x.shape()) + " has no two halves");
  return multiply(slice(x, axis, 0, size / 2), sigmoid(slice(x, axis, size / 2, size / 2)));
}

}  // namespace lockstep::ops
