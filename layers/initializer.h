#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "core/value/fields.h"

namespace lockstep {

/// Fills a new weight. Keras's initialisers, with their names, arguments and fan rules.
class Initializer {
 public:
  virtual ~Initializer() = default;
  virtual std::string_view type() const = 0;
  virtual void fields(Fields& fields) = 0;
  /// The values, a pure function of (seed of the job, the weight's path): the same on every rank. f64 in, any floating dtype out.
  virtual Tensor make(const TensorType& type, uint64_t seed, std::string_view path) const = 0;
};

/// From a Keras identifier ("glorot_uniform"), a job's {type: ..., ...}, or Keras's {class_name, config}. Unknown: Y30/M-family with the nearest name.
std::shared_ptr<const Initializer> make_initializer(const Value& value);
/// Keras 3's serialised form: {module, class_name, config, registered_name}.
Value to_keras(const Initializer& initializer);

template <>
struct FieldType<std::shared_ptr<const Initializer>> {
  static std::shared_ptr<const Initializer> read(const Value& value, const std::string&) { return value.is_null() ? nullptr : make_initializer(value); }
  static Value write(const std::shared_ptr<const Initializer>& value) { return value ? to_keras(*value) : Value(); }
  static Value schema() { return Value::map(); }
};

}  // namespace lockstep
