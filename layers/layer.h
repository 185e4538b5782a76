#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/value/fields.h"
#include "layers/initializer.h"
#include "layers/regularizer.h"

namespace lockstep {

class LayerContext;

/// A step of a model: its config, and the forward computation that it describes with ops on symbols. Weights are asked for where they are used
/// (LayerContext::weight): the first trace makes them. A layer knows nothing of replicas, ranks or devices.
class Layer {
 public:
  virtual ~Layer() = default;

  /// Keras's class name, also the `type` in a job file: "Dense".
  virtual std::string_view type() const = 0;
  /// The config's members, with Keras's names and defaults. `name`, `trainable` and `dtype` are read by the base (see base_fields).
  virtual void fields(Fields& fields) = 0;
  /// Describes y = f(x). May be called several times in a trace (a shared layer) and in several traces; weights are the same ones.
  /// Throws Error(M..) when the inputs don't fit, saying what would.
  virtual std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) = 0;

  /// name, trainable, dtype, and where they are set borrow and activity_regularizer: what every layer has.
  void base_fields(Fields& fields);

  std::string name;
  bool trainable = true;
  Value dtype;                                              ///< null: the model's policy; a name ("float32", "mixed_float16") or Keras's DTypePolicy mapping
  Value borrow;                                             ///< null, or {weight's name: "layer/weight" of another layer, ..., transposed: true}: weights that this layer uses and doesn't own
  std::shared_ptr<const Regularizer> activity_regularizer;  ///< of each output, divided by the rows of the global batch; may be null
};

/// The dtypes that a policy stands for: what layers compute in, what variables are kept in.
struct DTypePolicy {
  DType compute = DType::f32;
  DType variable = DType::f32;
};

/// From a policy's name ("float32", "mixed_float16", "mixed_bfloat16") or Keras's {class_name: DTypePolicy, config: {name}}; null: float32.
/// Y30 for an unknown name.
DTypePolicy policy_of(const Value& value);

/// A layer's weight as it asks for it.
struct WeightSpec {
  std::string name;  ///< Keras's: "kernel"
  Shape shape;
  std::shared_ptr<const Initializer> initializer;
  bool trainable = true;
  std::shared_ptr<const Regularizer> regularizer;  ///< may be null
  std::optional<DType> dtype;                      ///< the variable's; LayerContext::variable_dtype() unless said
};

/// One weight of a model, as the first trace found it.
struct Weight {
  Variable variable;  ///< path: "tower/hidden/kernel"; trainable: with frozen layers taken into account
  std::string layer;  ///< path of the owning layer: "tower/hidden"
  std::string name;   ///< "kernel"
  std::shared_ptr<const Initializer> initializer;
  std::shared_ptr<const Regularizer> regularizer;  ///< may be null
  const Layer* owner = nullptr;
};

/// The weights of a model, in the order in which they were first asked for.
class WeightList {
 public:
  const std::vector<Weight>& all() const { return weights_; }
  const Weight* find(std::string_view path) const;
  /// Adds, or checks that the same path has the same type: M-family error when it has not.
  const Weight& add(Weight weight);

 private:
  std::vector<Weight> weights_;  // few hundred: searched in order
};

/// What a layer sees while it is traced.
class LayerContext {
 public:
  struct Settings {
    bool training = false;
    int semantics = 3;        ///< Keras 2 or 3, where they differ
    int64_t global_rows = 0;  ///< rows of the step, all replicas
    int64_t rows = 0;         ///< rows of this replica
    Value dtype_policy;       ///< the model's; null: float32
    /// Gives what each call of a layer returns, with the layer's path. May be null.
    std::function<void(const std::string& path, std::span<const Symbol> outputs)> observe;
  };
  LayerContext(Graph& graph, WeightList& weights, Settings settings);

  Graph& graph() { return graph_; }
  const Settings& settings() const { return settings_; }
  bool training() const { return settings_.training; }
  /// Training or inference for the calls that follow: Keras's `training` argument of a call. Gives what was in force.
  bool set_training(bool training) { return std::exchange(settings_.training, training); }
  /// Path of the layer being called: "tower/hidden". Empty at the top.
  const std::string& path() const { return path_; }
  /// False inside a frozen layer.
  bool trainable() const { return trainable_; }

  /// dtypes of the policy in force for the layer being called.
  DType compute_dtype() const { return compute_dtype_; }
  DType variable_dtype() const { return variable_dtype_; }

  /// The weight's value, cast to the compute dtype where it is floating; made at the first call. Its path is path() + "/" + name. A name may hold
  /// "/" (a cell's weight: "lstm_cell/kernel"). Where the layer being called borrows it (Layer::borrow), the owner's weight, transposed if so said:
  /// Y36 when its shape is another.
  Symbol weight(const WeightSpec& spec);
  /// As it is stored, without a cast; after update(), the updated value, so that each call of a shared layer goes on from the one before.
  Symbol stored_weight(const WeightSpec& spec);
  /// Whether the layer being called takes this weight from another layer. What `borrow` names and no call asks for is an error: Y36.
  bool borrows(std::string_view name);
  /// Another layer's weight, by "layer/weight" as seen from the enclosing models, innermost first. Throws M-family with near names when there is none
  /// (yet): a borrower is traced after the owner.
  Symbol borrow(std::string_view layer_and_weight);
  /// A non-trainable weight's value after this step as this replica sees it. Ignored unless training.
  void update(Symbol stored_weight, Symbol value);
  /// A scalar loss that this call adds: this replica's share, the sum over replicas is the loss.
  void add_loss(Symbol loss);
  /// A stream of random numbers: a function of the layer's path and of how many the layer took before in this trace.
  uint64_t random_stream();

  /// Calls a layer as a part of the one being called: its path is path() + "/" + its name; inputs are cast to its compute dtype as Keras does
  /// (floating inputs; integers where the layer has float weights are cast by the layer). Sets the graph's layer for errors and profiles.
  std::vector<Symbol> call(Layer& layer, std::span<const Symbol> inputs);

  /// Floating or not, in the compute dtype: for layers that compute with float weights.
  Symbol computed(Symbol x) const;

  struct Update {
    std::string variable;
    Symbol value;
  };
  const std::vector<Update>& updates() const { return updates_; }
  const std::vector<Symbol>& losses() const { return losses_; }
  WeightList& weights() { return weights_; }

 private:
  Symbol borrowed(const WeightSpec& spec, std::string_view source);

  Graph& graph_;
  WeightList& weights_;
  Settings settings_;
  std::string path_;
  const Layer* layer_ = nullptr;
  bool trainable_ = true;
  DType compute_dtype_ = DType::f32;
  DType variable_dtype_ = DType::f32;
  std::vector<Update> updates_;
  std::vector<Symbol> losses_;
  std::vector<std::string> asked_;                         // weights that the layer being called may borrow
  std::vector<std::pair<std::string, uint64_t>> streams_;  // random streams taken, by path
};

}  // namespace lockstep
