#pragma once

#include <memory>
#include <string_view>

#include "core/graph/graph.h"
#include "core/value/fields.h"

namespace lockstep {

/// A scalar loss of a weight. Keras's regularisers: L1, L2, L1L2, OrthogonalRegularizer.
class Regularizer {
 public:
  virtual ~Regularizer() = default;
  virtual std::string_view type() const = 0;
  virtual void fields(Fields& fields) = 0;
  virtual Symbol loss(Symbol weight) const = 0;
};

/// From a Keras identifier ("l2"), a job's {type: ..., ...}, or Keras's {class_name, config}.
std::shared_ptr<const Regularizer> make_regularizer(const Value& value);
Value to_keras(const Regularizer& regularizer);

template <>
struct FieldType<std::shared_ptr<const Regularizer>> {
  static std::shared_ptr<const Regularizer> read(const Value& value, const std::string&) { return value.is_null() ? nullptr : make_regularizer(value); }
  static Value write(const std::shared_ptr<const Regularizer>& value) { return value ? to_keras(*value) : Value(); }
  static Value schema() { return Value::map(); }
};

}  // namespace lockstep
