#pragma once

#include <string_view>

namespace lockstep {

/// Whether a class name in a file, as it stands ("Dense", "my_package>Tower"), is one of Keras's own layers or models, whatever their version.
bool is_keras_class(std::string_view name);

}  // namespace lockstep
