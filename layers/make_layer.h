#pragma once

#include <memory>

#include "layers/layer.h"

namespace lockstep {

/// Makes a layer with Keras's defaults. A layer's own file ends with
///   template std::unique_ptr<Layer> lockstep::make_layer<layers::Dense>();
/// and builtin.cpp names the class in its list.
template <class T>
std::unique_ptr<Layer> make_layer() {
  return std::make_unique<T>();
}

}  // namespace lockstep
