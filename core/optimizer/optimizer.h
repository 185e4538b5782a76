#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/optimizer/schedule.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Which release's formulas and state an optimizer follows, where they differ.
enum class OptimizerSemantics { keras_3, keras_2, keras_2_legacy };

/// What an update may know of the step. Sources of the powers of beta and of the like: `iteration`.
struct UpdateStep {
  double learning_rate = 0;
  int64_t iteration = 0;  ///< updates made before this one
};

/// A run of elements to update: parallel arrays of `count` values of one floating dtype.
struct UpdateRun {
  DType dtype = DType::f32;
  int64_t count = 0;
  void* weights = nullptr;
  const void* gradients = nullptr;     ///< summed over replicas
  std::span<void* const> slots;        ///< in the order of slots()
};

/// Turns a gradient into a step, element by element. Knows nothing of replicas or ranks; keeps no state of its own: slots are given to it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Keras's class name.
  virtual std::string_view type() const = 0;
  /// Members of the class's own; those that all have are in base_fields().
  virtual void fields(Fields& fields) = 0;
  /// Keras 3's names, in its order: "momentums", "velocities".
  virtual std::vector<std::string> slots() const = 0;
  /// What each slot starts from.
  virtual double initial_slot(size_t) const { return 0; }
  /// Updates weights and slots in place. Elements do not depend on their place in the run.
  virtual void update(const UpdateRun& run, const UpdateStep& step) const = 0;

  /// name, learning_rate, weight_decay, clipvalue and the rest that Keras's base class has.
  void base_fields(Fields& fields);
  double learning_rate_at(int64_t iteration) const { return learning_rate->at(iteration); }

  std::string name;
  std::shared_ptr<const Schedule> learning_rate;
  std::optional<double> weight_decay;
  std::optional<double> clipvalue;
  OptimizerSemantics semantics = OptimizerSemantics::keras_3;
};

/// From a Keras identifier ("adam"), a job's {type: Adam, ...}, or Keras's {class_name, config}. Y19 for an unknown class, Y39 for a key of another one.
std::shared_ptr<const Optimizer> make_optimizer(const Value& value);
std::vector<std::string> optimizer_types();

/// A slot of a variable, by their numbers.
struct SlotOfVariable {
  size_t slot = 0;
  size_t variable = 0;
};
/// The order in which Keras 3 keeps slots in files: variable by variable, all slots of each; but `velocity_hats` of all variables come last.
std::vector<SlotOfVariable> keras_slot_order(const std::vector<std::string>& slots, size_t variables);
/// Keras 3's serialised form: {module, class_name, config, registered_name}.
Value to_keras(const Optimizer& optimizer);

std::unique_ptr<Optimizer> make_sgd();
std::unique_ptr<Optimizer> make_adam();

}  // namespace lockstep
