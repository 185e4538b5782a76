#include "layers/identifier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error/error.h"

namespace lockstep {

Identifier read_identifier(const Value& value, std::string_view what) {
  Identifier result;
  result.place = value.place();
  if (value.is_string()) {
    result.name = value.as_string();
    result.bare = true;
    return result;
  }
  if (value.is_map()) {
    const Value* class_name = value.find("class_name");
    if (class_name && class_name->is_string()) {
      const Value* config = value.find("config");
      if (config && config->is_string()) return read_identifier(*config, what);
      result.name = class_name->as_string();
      if (config && config->is_map()) result.config = *config;
      return result;
    }
    const Value* type = value.find("type");
    if (type && type->is_string()) {
      result.name = type->as_string();
      result.config = value;
      result.config.erase("type");
      return result;
    }
  }
  fail_at(value.place(), "Y12", fmt::format("expected the name of a known {0}, or {{type: NAME, ...}} with its arguments, found {1}", what, value.described()));
}

void fail_unknown(const Identifier& identifier, std::string_view what, const std::vector<std::string>& known) {
  std::string hint = did_you_mean(identifier.name, known);
  // A Python function has no code in a file, only a name.
  if (hint.empty()) hint = fmt::format("; known: {}; a class or function of one's own is mapped in restore.custom_objects", fmt::join(known, ", "));
  fail_at(identifier.place, "Y30", fmt::format("unknown {} '{}'{}", what, printable(identifier.name), hint));
}

}  // namespace lockstep
