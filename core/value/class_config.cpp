#include "core/value/class_config.h"

#include <cctype>

#include <fmt/format.h>

namespace lockstep {

ClassConfig read_class_config(const Value& value, std::string_view what) {
  if (value.is_string()) return {value.as_string(), Value::map(), value.place()};
  if (value.is_map()) {
    if (const Value* class_name = value.find("class_name")) {
      const Value* config = value.find("config");
      return {class_name->as_string(), config && !config->is_null() ? *config : Value::map(), value.place()};
    }
    if (const Value* type = value.find("type")) {
      ClassConfig result{type->as_string(), value, value.place()};
      result.config.erase("type");
      return result;
    }
    fail_at(value.place(), "Y11", fmt::format("{}: 'type' is required", what));
  }
  fail_at(value.place(), "Y12", fmt::format("{}: expected a name or a mapping with 'type', found {}", what, value.described()));
}

Value keras_class_config(std::string_view module, std::string_view class_name, Value config) {
  return Value(Value::Map{{"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", Value()}});
}

void unknown_class(const ClassConfig& config, std::string_view what, const std::vector<std::string>& known, std::string code) {
  fail_at(config.place, std::move(code), fmt::format("unknown {} '{}'{}; known: {}", what, printable(config.type), did_you_mean(config.type, known), fmt::join(known, ", ")));
}

bool same_identifier(std::string_view a, std::string_view b) {
  const auto bare = [](std::string_view text) {
    std::string result;
    for (const char c : text) {
      if (c != '_') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
  };
  return bare(a) == bare(b);
}

}  // namespace lockstep
