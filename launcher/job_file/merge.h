#pragma once

#include <string>
#include <vector>

#include "core/value/fields.h"
#include "core/value/value.h"

namespace lockstep {

/// The tree of a file and of all that it includes, variables expanded; every value keeps the place where it is written. `files` gets those read, in order.
/// Variables that are not set go to `problems`; a file that can't be read is thrown with them.
Value read_with_includes(const std::string& path, std::vector<std::string>& files, Problems& problems);

/// Applies overrides to a job's tree in the order given; `schema` says which keys may be set that the file lacks. Y41 for each that is wrong.
void apply_overrides(Value& tree, const Value& schema, const std::vector<std::string>& overrides, Problems& problems);

/// Whether a value comes from an override.
bool is_from_command_line(const Place& place);

/// Puts ${VARIABLE}s of the environment into every text; $${ becomes ${. Y40 for each that is not set.
void expand_variables(Value& tree, Problems& problems);
/// The text for which expand_variables gives `text` back.
std::string without_variables(std::string text);

}  // namespace lockstep
