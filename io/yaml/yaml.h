#pragma once

#include <functional>
#include <string>

#include "core/value/value.h"

namespace lockstep {

/// Strict YAML 1.2 with the core schema: one document, a mapping's keys once, no tags, `<<` merged, aliases expanded. Plain 1e-4, .5 and 1E5 are
/// numbers; what another version of YAML reads differently (010, 0x10, 1_000, yes, on, TRUE) is an error that says what to write. Keys are text.
/// Every value and key has its place, in characters; an alias keeps the place where its anchor's value is written.
///
/// Throws every problem that can be told at once: Y00 for what is no YAML at all, else Y01 to Y08, Y14 to Y18 and Y20 to Y28. At most 1 MiB.

/// A file whose top level is a mapping (Y02 when it is empty, Y03 when it is something else).
Value read_yaml_file(const std::string& path);
/// Any value; null when the text is empty. `name` stands for the text in places.
Value read_yaml_text(std::string name, std::string text);

/// What to say about a member: `above` in lines of its own before the key, `beside` after a scalar or a list on one line. Either may be absent or
/// return nothing; no "#" is needed. Paths are those of join_path.
struct YamlComments {
  std::function<std::string(const std::string& path, const Value& value)> above;
  std::function<std::string(const std::string& path, const Value& value)> beside;
};

/// Block style, short lists of scalars on one line; reads back as the same tree (numbers that are not finite apart: a reader refuses them).
std::string write_yaml(const Value& value, const YamlComments& comments = {});

}  // namespace lockstep
