#pragma once

#include <string>
#include <vector>

#include "core/value/value.h"

namespace lockstep {

/// A thing of a named class with its config: what optimizers, schedules, losses, initialisers are in jobs and in Keras's files.
struct ClassConfig {
  std::string type;  ///< "CosineDecay", or an identifier such as "adam"
  Value config;      ///< a mapping; may be empty
  Place place;
};

/// Reads the three forms: an identifier ("adam"), a job's {type: X, ...}, Keras's {class_name: X, config: {...}, ...}.
/// `what` names it in messages: "optimizer". Throws Y12 for another form.
ClassConfig read_class_config(const Value& value, std::string_view what);

/// Keras 3's form: {module, class_name, config, registered_name: null}.
Value keras_class_config(std::string_view module, std::string_view class_name, Value config);

/// Throws Y19-like Error(code) that names the nearest known type.
[[noreturn]] void unknown_class(const ClassConfig& config, std::string_view what, const std::vector<std::string>& known, std::string code);

/// "adam", "Adam" and "ADAM" are one; "_" is left out: Keras's string identifiers.
bool same_identifier(std::string_view a, std::string_view b);

}  // namespace lockstep
