#include "core/optimizer/optimizer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/value/class_config.h"

namespace lockstep {

namespace {

struct Entry {
  std::string_view type;
  std::unique_ptr<Optimizer> (*make)();
};

/// Every optimizer: one line each.
constexpr std::array<Entry, 2> entries = {{
    {"SGD", make_sgd},
    {"Adam", make_adam},
}};

/// A member of Keras's base class whose only supported value is "off".
struct AlwaysOff {
  Value value;
};

}  // namespace

template <>
struct FieldType<AlwaysOff> {
  static AlwaysOff read(const Value& value, const std::string& path) {
    const bool off = value.is_null() || (value.is_boolean() && !value.as_boolean());
    if (!off) fail_at(value.place(), "Y13", fmt::format("{}: this release trains without it; found {}, expected null or false. Remove the key", path, value.described()));
    return {value};
  }
  static Value write(const AlwaysOff& off) { return off.value; }
  static Value schema() { return Value(Value::Map{{"enum", Value(Value::List{Value(), Value(false)})}}); }
};

namespace {

/// Members that Keras writes into every config and that no optimizer here uses.
struct Inert {
  AlwaysOff clipnorm, global_clipnorm, use_ema{Value(false)}, ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps;
  double ema_momentum = 0.99;

  void add(Fields& fields) {
    fields.add("clipnorm", clipnorm, "Largest norm of one variable's gradient.");
    fields.add("global_clipnorm", global_clipnorm, "Largest norm of all gradients together.");
    fields.add("use_ema", use_ema, "Keep an exponential moving average of the weights.");
    fields.add("ema_momentum", ema_momentum, "Momentum of the average; unused without use_ema.");
    fields.add("ema_overwrite_frequency", ema_overwrite_frequency, "Updates between overwriting weights by their average.");
    fields.add("loss_scale_factor", loss_scale_factor, "Factor on the loss before backward.");
    fields.add("gradient_accumulation_steps", gradient_accumulation_steps, "Steps whose gradients make one update.");
  }
};

/// Y39 for keys that this class does not have but another may.
void check_keys(const Value& config, const Fields& fields, std::string_view type) {
  std::vector<std::string> known = fields.names();
  Problems problems;
  for (const auto& [key, value] : config.as_map()) {
    const auto is_key = [&, &name = key](const std::string& other) { return other == name; };
    if (std::any_of(known.begin(), known.end(), is_key) || std::any_of(fields.ignored().begin(), fields.ignored().end(), is_key)) continue;
    const Place& place = value.key_place().source ? value.key_place() : value.place();
    problems.add(problem_at(place, "Y39", fmt::format("'{}' is not an option of {}{}; its options: {}", printable(key), type, did_you_mean(key, known), fmt::join(known, ", "))));
  }
  problems.raise();
}

}  // namespace

void Optimizer::base_fields(Fields& fields) {
  fields.add("name", name, "A name; it appears in files.");
  fields.add("learning_rate", learning_rate, "A number or a schedule: {type: CosineDecay, ...}.");
  fields.add("weight_decay", weight_decay, "Share of each weight taken off at each update, times the learning rate; null: none.");
  fields.add("clipvalue", clipvalue, "Largest absolute value of a gradient's element; null: no limit.");
}

std::vector<std::string> optimizer_types() {
  std::vector<std::string> types;
  for (const Entry& entry : entries) types.emplace_back(entry.type);
  return types;
}

std::vector<SlotOfVariable> keras_slot_order(const std::vector<std::string>& slots, size_t variables) {
  std::vector<SlotOfVariable> order;
  const auto append = [&](bool last) {
    for (size_t v = 0; v < variables; ++v) {
      for (size_t s = 0; s < slots.size(); ++s) {
        if ((slots[s] == "velocity_hats") == last) order.push_back({s, v});
      }
    }
  };
  append(false);
  append(true);
  return order;
}

std::shared_ptr<const Optimizer> make_optimizer(const Value& value) {
  ClassConfig config = read_class_config(value, "optimizer");
  // Keras 2 writes "Custom>Adam" for classes saved by some of its releases.
  if (const size_t bracket = config.type.find('>'); bracket != std::string::npos) config.type.erase(0, bracket + 1);
  for (const Entry& entry : entries) {
    if (!same_identifier(entry.type, config.type)) continue;
    std::shared_ptr<Optimizer> optimizer = entry.make();
    std::string semantics = "keras-3";
    Inert inert;
    Fields fields;
    optimizer->base_fields(fields);
    optimizer->fields(fields);
    inert.add(fields);
    fields.add("semantics", semantics, "Whose formulas: keras-3, keras-2, keras-2-legacy.").one_of({"keras-3", "keras-2", "keras-2-legacy"});
    fields.ignore("jit_compile");
    fields.ignore("is_legacy_optimizer");
    fields.ignore("decay");
    check_keys(config.config, fields, entry.type);
    read_fields(config.config, fields, fmt::format("optimizer ({})", entry.type));
    if (const Value* decay = config.config.find("decay"); decay && decay->is_number() && decay->as_number() != 0) {
      fail_at(decay->place(), "Y13", "optimizer: 'decay' of Keras's legacy optimizers: use learning_rate: {type: InverseTimeDecay, ...} there and convert");
    }
    optimizer->semantics = semantics == "keras-3" ? OptimizerSemantics::keras_3 : semantics == "keras-2" ? OptimizerSemantics::keras_2 : OptimizerSemantics::keras_2_legacy;
    return optimizer;
  }
  unknown_class(config, "optimizer", optimizer_types(), "Y19");
}

Value to_keras(const Optimizer& optimizer) {
  Fields fields;
  Inert inert;
  auto& mutable_optimizer = const_cast<Optimizer&>(optimizer);  // only reads
  mutable_optimizer.base_fields(fields);
  mutable_optimizer.fields(fields);
  inert.add(fields);
  return keras_class_config("keras.optimizers", optimizer.type(), write_fields(fields));
}

}  // namespace lockstep
