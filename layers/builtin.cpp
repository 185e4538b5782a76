#include "layers/model.h"

namespace lockstep {

// Defined in make_layer.h, made in each layer's own file.
template <class T>
std::unique_ptr<Layer> make_layer();

namespace layers {

// Every built-in layer, by its type in a job and class name in Keras. One line a layer; `class X` also declares it.
static const std::pair<const char*, std::unique_ptr<Layer> (*)()> built_in[] = {
    {"Activation", make_layer<class Activation>},
    {"Add", make_layer<class Add>},
    {"Average", make_layer<class Average>},
    {"BatchNormalization", make_layer<class BatchNormalization>},
    {"Cast", make_layer<class Cast>},
    {"Concatenate", make_layer<class Concatenate>},
    {"Conv2D", make_layer<class Conv2D>},
    {"Dense", make_layer<class Dense>},
    {"Dot", make_layer<class Dot>},
    {"Dropout", make_layer<class Dropout>},
    {"ELU", make_layer<class ELU>},
    {"Embedding", make_layer<class Embedding>},
    {"Flatten", make_layer<class Flatten>},
    {"GlobalAveragePooling2D", make_layer<class GlobalAveragePooling2D>},
    {"Identity", make_layer<class Identity>},
    {"LeakyReLU", make_layer<class LeakyReLU>},
    {"MaxPooling2D", make_layer<class MaxPooling2D>},
    {"Maximum", make_layer<class Maximum>},
    {"Minimum", make_layer<class Minimum>},
    {"Multiply", make_layer<class Multiply>},
    {"PReLU", make_layer<class PReLU>},
    {"Print", make_layer<class Print>},
    {"ReLU", make_layer<class ReLU>},
    {"Rescaling", make_layer<class Rescaling>},
    {"Reshape", make_layer<class Reshape>},
    {"Softmax", make_layer<class Softmax>},
    {"Subtract", make_layer<class Subtract>},
    {"SyncBatchNormalization", make_layer<class SyncBatchNormalization>},
};

}  // namespace layers

LayerRegistry builtin_layers() {
  LayerRegistry registry;
  for (const auto& [type, make] : layers::built_in) registry.add(type, make);
  return registry;
}

}  // namespace lockstep
