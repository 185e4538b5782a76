#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// One type of a job's `custom_layers:`, a small graph with parameters, as it is written there.
struct CustomType {
  std::string name;
  std::vector<std::pair<std::string, Value>> parameters;  ///< with their defaults; null: required
  std::vector<std::string> inputs;
  std::vector<Place> input_places;
  Value weights;  ///< null, or {name: {shape, initializer, trainable, regularizer}}
  Value layers;
  Value outputs;  ///< null: the last layer
  Place place;

  /// "units (32), name (required)", for messages.
  std::string parameters_text() const;
};

class CustomTypes;

/// A layer of a custom type: its parameters put into the type's graph. `$parameter` stands for a parameter's value in any value of the graph's config
/// and in text ("$name/kernel"). Layers inside are parts of this one: "tower/hidden/kernel"; so are weights of its own: "tower/shift".
class CustomLayer final : public Layer {
 public:
  CustomLayer(std::shared_ptr<const CustomTypes> types, const CustomType& definition);

  std::string_view type() const override { return definition_.name; }
  /// The parameters.
  void fields(Fields& fields) override;
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override;

  /// Y35 for keys of `config` that are neither `other` keys nor parameters, and for parameters without a value; names the type's parameters.
  void check_parameters(const Value& config, const std::vector<std::string>& other, const std::string& path) const;
  /// The graph with the parameters in place; made at first use. Its inputs are the type's, then the layer's own weights. Throws Y-family problems.
  Model& inner();
  const CustomType& definition() const { return definition_; }

  std::string class_name;       ///< of the class in a file that this type stands for (restore.custom_objects); else empty
  std::string registered_name;  ///< of that class: "my_package>Tower"
  bool values_from_job = false;  ///< the file had no config of the class: the parameters' defaults hold

 private:
  std::shared_ptr<const CustomTypes> types_;
  const CustomType& definition_;
  std::vector<std::pair<std::string, Value>> values_;
  struct OwnedWeight {
    WeightSpec spec;  // but for its shape
    Value shape;      // a list of numbers and "last"
    Place place;
  };
  std::vector<OwnedWeight> weights_;
  std::unique_ptr<Model> inner_;
};

/// Adds the types of a job's `custom_layers:` section to a registry; a section that is null adds none. Types may use each other, in any order, and every
/// type that the registry has by now. Throws one Error with every problem: Y09..Y17, Y29 for names that are taken, Y30 for unknown types, Y35 for unknown
/// `$parameters`, Y31 for types that contain themselves.
void add_custom_layers(LayerRegistry& registry, const Value& section);

/// `value` with every `$parameter` replaced; Y35 for one that `type` does not have.
Value substitute(const Value& value, const std::vector<std::pair<std::string, Value>>& parameters, const CustomType& type);

}  // namespace lockstep
