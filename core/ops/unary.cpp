#include <cmath>

#include "core/ops/elementwise.h"
#include "core/ops/ops.h"

namespace lockstep::ops {

namespace {

struct Negative {
  static constexpr std::string_view name = "negative";
  static constexpr Derivative derivative_of = Derivative::linear;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return -x; }
};

/// Its derivative at 0 is 0.
struct Absolute {
  static constexpr std::string_view name = "absolute", gradient_name = "absolute_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::fabs(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(x > 0) - C(x < 0); }
};

struct Square {
  static constexpr std::string_view name = "square", gradient_name = "square_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x * x; }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return 2 * x; }
};

struct Sqrt {
  static constexpr std::string_view name = "sqrt", gradient_name = "sqrt_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::sqrt(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return C(0.5) / y; }
};

struct Rsqrt {
  static constexpr std::string_view name = "rsqrt", gradient_name = "rsqrt_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return 1 / std::sqrt(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return C(-0.5) * y * y * y; }
};

struct Exp {
  static constexpr std::string_view name = "exp", gradient_name = "exp_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::exp(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return y; }
};

struct Log {
  static constexpr std::string_view name = "log", gradient_name = "log_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::log(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return 1 / x; }
};

struct Log1p {
  static constexpr std::string_view name = "log1p", gradient_name = "log1p_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::log1p(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return 1 / (1 + x); }
};

struct Expm1 {
  static constexpr std::string_view name = "expm1", gradient_name = "expm1_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::expm1(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return y + 1; }
};

struct Sign {
  static constexpr std::string_view name = "sign";
  static constexpr Derivative derivative_of = Derivative::none;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return x != x ? x : C(x > 0) - C(x < 0); }
};

struct Sin {
  static constexpr std::string_view name = "sin", gradient_name = "sin_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::sin(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return std::cos(x); }
};

struct Cos {
  static constexpr std::string_view name = "cos", gradient_name = "cos_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::cos(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return -std::sin(x); }
};

struct Reciprocal {
  static constexpr std::string_view name = "reciprocal", gradient_name = "reciprocal_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return 1 / x; }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return -y * y; }
};

struct Floor {
  static constexpr std::string_view name = "floor";
  static constexpr Derivative derivative_of = Derivative::none;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::floor(x); }
};

struct Ceil {
  static constexpr std::string_view name = "ceil";
  static constexpr Derivative derivative_of = Derivative::none;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::ceil(x); }
};

struct Erf {
  static constexpr std::string_view name = "erf", gradient_name = "erf_gradient";
  static constexpr Derivative derivative_of = Derivative::of_argument;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::erf(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C x) const { return C(1.1283791670955125739) * std::exp(-x * x); }  // 2 / sqrt(pi)
};

struct Tanh {
  static constexpr std::string_view name = "tanh", gradient_name = "tanh_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return std::tanh(x); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return 1 - y * y; }
};

struct Sigmoid {
  static constexpr std::string_view name = "sigmoid", gradient_name = "sigmoid_gradient";
  static constexpr Derivative derivative_of = Derivative::of_result;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return 1 / (1 + std::exp(-x)); }
  template <class C>
  LOCKSTEP_HD C derivative(C y) const { return y * (1 - y); }
};

struct IsFinite {
  static constexpr std::string_view name = "is_finite";
  static constexpr Derivative derivative_of = Derivative::none;
  template <class C>
  LOCKSTEP_HD C value(C x) const { return C(x - x == 0); }
};

}  // namespace

Symbol negative(Symbol x) { return apply(Negative{}, x); }
Symbol absolute(Symbol x) { return apply(Absolute{}, x); }
Symbol square(Symbol x) { return apply(Square{}, x); }
Symbol sqrt(Symbol x) { return apply(Sqrt{}, x); }
Symbol rsqrt(Symbol x) { return apply(Rsqrt{}, x); }
Symbol exp(Symbol x) { return apply(Exp{}, x); }
Symbol log(Symbol x) { return apply(Log{}, x); }
Symbol log1p(Symbol x) { return apply(Log1p{}, x); }
Symbol expm1(Symbol x) { return apply(Expm1{}, x); }
Symbol sign(Symbol x) { return apply(Sign{}, x); }
Symbol sin(Symbol x) { return apply(Sin{}, x); }
Symbol cos(Symbol x) { return apply(Cos{}, x); }
Symbol reciprocal(Symbol x) { return apply(Reciprocal{}, x); }
Symbol floor(Symbol x) { return apply(Floor{}, x); }
Symbol ceil(Symbol x) { return apply(Ceil{}, x); }
Symbol erf(Symbol x) { return apply(Erf{}, x); }
Symbol tanh(Symbol x) { return apply(Tanh{}, x); }
Symbol sigmoid(Symbol x) { return apply(Sigmoid{}, x); }
Symbol is_finite(Symbol x) { return apply(IsFinite{}, x); }

}  // namespace lockstep::ops
