#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/value/fields.h"

namespace lockstep {

/// One of Keras's activation functions with its arguments. The default is linear.
class ActivationFunction {
 public:
  ActivationFunction() = default;

  /// f(x); x floating. `semantics` 2: Keras 2's formula, where it differs (hard_sigmoid).
  Symbol apply(Symbol x, int semantics) const;
  bool is_linear() const { return !function_; }
  /// As Keras writes it: the function's name, or the layer that holds its arguments.
  const Value& written() const { return written_; }

 private:
  friend ActivationFunction make_activation(const Value& value);

  std::function<Symbol(Symbol x, int semantics)> function_;
  Value written_ = "linear";
};

/// From a Keras identifier ("relu"), a layer that is one ({class_name: LeakyReLU, config}), or a job's {type: leaky_relu, negative_slope: 0.1}.
/// Null: linear. Y30 for an unknown name, with the nearest.
ActivationFunction make_activation(const Value& value);
/// Every name, in alphabetical order.
std::vector<std::string> activation_names();

template <>
struct FieldType<ActivationFunction> {
  static ActivationFunction read(const Value& value, const std::string&) { return make_activation(value); }
  static Value write(const ActivationFunction& activation) { return activation.written(); }
  static Value schema() { return Value(Value::Map{{"type", Value(Value::List{"string", "object", "null"})}}); }
};

}  // namespace lockstep
