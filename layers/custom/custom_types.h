#pragma once

#include <memory>
#include <vector>

#include "layers/custom/custom_layer.h"

namespace lockstep {

/// The custom types of a job and what their graphs are made of. Shared by the layers of these types.
class CustomTypes : public std::enable_shared_from_this<CustomTypes> {
 public:
  CustomTypes(LayerRegistry known, std::vector<CustomType> types);

  /// Known types and the custom ones.
  LayerRegistry registry() const;
  const std::vector<CustomType>& types() const { return types_; }

 private:
  LayerRegistry known_;  // without the custom types: they would own this, and this them
  const std::vector<CustomType> types_;
};

}  // namespace lockstep
