#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/layer.h"

namespace lockstep {

/// Makes a layer of a type from its config (a job's mapping or Keras's config). A registry is an explicit list; custom types are added by a job.
class LayerRegistry {
 public:
  using Make = std::function<std::unique_ptr<Layer>()>;

  /// Replaces a type of the same name.
  void add(std::string type, Make make);
  const Make* find(std::string_view type) const;
  /// In alphabetical order.
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
    std::string name;        ///< of Keras's InputLayer
    Shape shape;             ///< of one row; -1 where unknown
    DType dtype = DType::f32;
    bool any_shape = false;  ///< a nested model that takes what it is given: `shape` says nothing
    std::string key;         ///< where the inputs are a mapping, as Keras allows; else empty
  };
  /// A tensor inside the model: output `index` of call `call`, or input `index` where call is -1.
  struct Reference {
    int call = -1;
    int index = 0;
    bool operator==(const Reference&) const = default;
  };
  struct Call {
    int layer = 0;
    std::vector<Reference> inputs;
    std::string name;              ///< of a shared layer's further call in a job ("again"); else empty: the layer's
    std::optional<bool> training;  ///< Keras's argument of the call, where one was given
    Place place;                   ///< where a job or a file describes the call
  };
  struct Output {
    std::string key;  ///< Keras's output name: its key, else its layer's name (`name`, `name_1` where a layer gives two)
    Reference from;
  };

  /// class_name.
  std::string_view type() const override { return class_name; }
  /// None: the parts of a model are not config members; layers/model_builder.h and layers/keras read them.
  void fields(Fields&) override {}
  /// Calls each layer by LayerContext::call, so that paths nest. LayerContext::Settings::observe is told of every call under its layer's path, and of one
  /// with a name of its own under that name too. What does not fit is told with the layer's path and the shapes that led to it: Y32 where a job describes
  /// the model, else the code of what was thrown.
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override;

  /// How layers are ordered: as Keras does (by depth, then by a walk from the outputs: the order of files, summaries and weights), or as they are.
  enum class Order { keras, declared };
  /// Puts the layers in order and the calls in one in which they can run, borrowers after owners. Layers and calls that no output needs are left out.
  /// Y31 for a cycle, Y36 for one by borrowing; M23 instead where a file describes the model.
  void arrange(Order order);

  /// One of Keras's `layers`: a layer, or the Input layer of an input.
  struct Part {
    bool is_input = false;
    int index = 0;  ///< into inputs or layers
  };
  /// Input layers and layers in the order in which Keras lists them; in a Sequential without its Input layer.
  std::vector<Part> parts() const;

  /// Who describes the model, hence whose fault what does not fit is: a job's (Y) or a file's (M).
  enum class Source { job, file };

  Source source = Source::job;
  std::vector<Input> inputs;
  std::vector<std::unique_ptr<Layer>> layers;  ///< Input layers apart
  std::vector<Call> calls;                     ///< in an order in which they can run
  std::vector<Output> outputs;
  std::string class_name = "Functional";       ///< or "Sequential", or a custom class that stands for this model
  std::string registered_name;                 ///< of that class: "my_package>Demo"; empty for Keras's own
  Value class_config;                          ///< that class's config in the file that it came from; else null
  Value dtype_policy;
  bool dict_outputs = false;
  /// For the outermost model: where a user's own class keeps a layer in files, by the layer's path: {"dense": "dense_layer"}. Others follow Keras.
  std::map<std::string, std::string> object_paths;
};

/// The model of layers inside a layer: a nested model itself, or the graph of a job's custom type; null for others.
Model* inner_model(Layer& layer);
const Model* inner_model(const Layer& layer);

/// Names that Keras gives to outputs without a key: the layer's name, `name_1` where one comes again.
std::vector<std::string> keras_output_names(const Model& model);

/// "Conv2DTranspose" to "conv2d_transpose", as Keras names layers and file groups.
std::string snake_case(std::string_view class_name);

/// What `layer` and the layers inside it borrow and don't own themselves: "image_embedding/kernel".
std::vector<std::string> borrowed_weights(const Layer& layer);
/// For the outermost model, where all of it is known. Y29 (of a file: M23) for two layers with one path ("tower/dense" beside "dense" in "tower"), Y36 (M23)
/// for borrowing what no layer owns.
void check_whole(const Model& model);

}  // namespace lockstep
