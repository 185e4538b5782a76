#include "core/optimizer/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/value/class_config.h"

namespace lockstep {

namespace {

class Constant final : public Schedule {
 public:
  std::string_view type() const override { return "Constant"; }
  void fields(Fields& fields) override { fields.add("value", value, "The learning rate of every step.").at_least(0); }
  double at(int64_t) const override { return value; }

  double value = 0;
};

/// From initial_learning_rate (after a linear warm-up to warmup_target) down along half a cosine to alpha times it.
/// Source: Loshchilov and Hutter 2016. Keras: schedules.CosineDecay.
class CosineDecay final : public Schedule {
 public:
  std::string_view type() const override { return "CosineDecay"; }
  void fields(Fields& fields) override {
    fields.add("initial_learning_rate", initial_learning_rate, "Learning rate at the start.").require().at_least(0);
    fields.add("decay_steps", decay_steps, "Steps of the decay, after those of the warm-up.").require().greater_than(0);
    fields.add("alpha", alpha, "Lowest learning rate, as a fraction of the initial one.");
    fields.add("warmup_target", warmup_target, "Learning rate at the end of the warm-up; null: no warm-up.");
    fields.add("warmup_steps", warmup_steps, "Steps of the warm-up.").at_least(0);
    fields.add("name", name, "A name; not used.");
  }
  double at(int64_t step) const override {
    double start = initial_learning_rate;
    double position = static_cast<double>(step);
    if (warmup_target) {
      const auto warmup = static_cast<double>(warmup_steps);
      if (position < warmup) return initial_learning_rate + (*warmup_target - initial_learning_rate) * position / warmup;
      start = *warmup_target;
      position -= warmup;
    }
    const double fraction = std::min(position, static_cast<double>(decay_steps)) / static_cast<double>(decay_steps);
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * fraction));
    return start * ((1 - alpha) * cosine + alpha);
  }

 private:
  double initial_learning_rate = 0;
  int64_t decay_steps = 1;
  double alpha = 0;
  std::optional<double> warmup_target;
  int64_t warmup_steps = 0;
  std::string name = "CosineDecay";
};

const std::array<std::pair<std::string_view, std::function<std::unique_ptr<Schedule>()>>, 1>& schedules() {
  static const std::array<std::pair<std::string_view, std::function<std::unique_ptr<Schedule>()>>, 1> list = {{
      {"CosineDecay", [] { return std::make_unique<CosineDecay>(); }},
  }};
  return list;
}

}  // namespace

std::shared_ptr<const Schedule> make_schedule(const Value& value) {
  if (value.is_number()) {
    auto constant = std::make_shared<Constant>();
    constant->value = FieldType<double>::read(value, "learning_rate");
    return constant;
  }
  const ClassConfig config = read_class_config(value, "learning_rate");
  std::vector<std::string> known;
  for (const auto& [type, make] : schedules()) {
    known.emplace_back(type);
    if (type != config.type) continue;
    std::shared_ptr<Schedule> schedule = make();
    Fields fields;
    schedule->fields(fields);
    read_fields(config.config, fields, "learning_rate");
    return schedule;
  }
  unknown_class(config, "schedule", known, "Y30");
}

Value to_keras(const Schedule& schedule) {
  if (const auto* constant = dynamic_cast<const Constant*>(&schedule)) return constant->value;
  Fields fields;
  const_cast<Schedule&>(schedule).fields(fields);  // only reads
  return keras_class_config("keras.optimizers.schedules", schedule.type(), write_fields(fields));
}

}  // namespace lockstep
