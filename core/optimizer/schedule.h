#pragma once

#include <memory>
#include <string_view>

#include "core/value/fields.h"

namespace lockstep {

/// A learning rate as a function of the optimizer's raw iteration, counted from 0. Keras: keras.optimizers.schedules.
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual std::string_view type() const = 0;
  virtual void fields(Fields& fields) = 0;
  virtual double at(int64_t step) const = 0;
};

/// A number, a job's {type: CosineDecay, ...} or Keras's {class_name, config}.
std::shared_ptr<const Schedule> make_schedule(const Value& value);
/// The number of a constant one, else Keras's {module, class_name, config, registered_name}.
Value to_keras(const Schedule& schedule);

template <>
struct FieldType<std::shared_ptr<const Schedule>> {
  static std::shared_ptr<const Schedule> read(const Value& value, const std::string&) { return make_schedule(value); }
  static Value write(const std::shared_ptr<const Schedule>& value) { return value ? to_keras(*value) : Value(); }
  static Value schema() { return Value::map(); }
};

}  // namespace lockstep
