#pragma once

#include <memory>

#include "layers/losses/loss.h"

namespace lockstep {

/// Makes a loss with Keras's defaults. A loss's own file ends with
///   template std::shared_ptr<Loss> lockstep::make_loss<losses::MeanSquaredError>();
/// and the list in loss.cpp names the class.
template <class T>
std::shared_ptr<Loss> make_loss() {
  return std::make_shared<T>();
}

}  // namespace lockstep
