#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layers/layer.h"

namespace lockstep {

/// Makes a layer of a type from its config (a job's mapping or Keras's config). A registry is an explicit list; custom types are added by a job.
class LayerRegistry {
 public:
  using Make = std::function<std::unique_ptr<Layer>()>;

  void add(std::string type, Make make);
  const Make* find(std::string_view type) const;
  std::vector<std::string> types() const;

 private:
  std::map<std::string, Make, std::less<>> makes_;
};

/// Every built-in layer (layers/builtin.cpp).
LayerRegistry builtin_layers();

/// A graph of layer calls with named inputs and outputs; itself a layer, so that models nest and are shared.
class Model final : public Layer {
 public:
  struct Input {
    std::string name;
    Shape shape;  ///< of one row; -1 where unknown
    DType dtype = DType::f32;
  };
  /// A tensor inside the model: output `index` of call `call`, or input `index` where call is -1.
  struct Reference {
    int call = -1;
    int index = 0;
  };
  struct Call {
    int layer = 0;
    std::vector<Reference> inputs;
  };
  struct Output {
    std::string key;   ///< Keras's output name: its key, else its layer's name (`name`, `name_1` where a layer gives two)
    Reference from;
  };

  std::string_view type() const override;
  void fields(Fields& fields) override;
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override;

  std::vector<Input> inputs;
  std::vector<std::unique_ptr<Layer>> layers;  ///< Input layers apart
  std::vector<Call> calls;                     ///< in an order in which they can run
  std::vector<Output> outputs;
  std::string class_name = "Functional";       ///< or "Sequential", or a custom class that stands for this model
  Value dtype_policy;
  bool dict_outputs = false;

  /// Gives every symbol of a layer's call, so that `predict --layer` and probes can name it: (layer path, outputs). May be null.
  std::function<void(const std::string& path, std::span<const Symbol> outputs)> observe;
};

}  // namespace lockstep
