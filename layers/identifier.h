#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/class_config.h"
#include "core/value/value.h"

namespace lockstep {

/// A named object with arguments, in any of the forms in which Keras and jobs write one:
///   "glorot_uniform"
///   {type: GlorotUniform, seed: 1}                                       a job
///   {class_name: GlorotUniform, config: {seed: 1}, module: ..., ...}     Keras
///   {class_name: function, config: relu, ...}                            Keras, for a function
struct Identifier {
  std::string name;
  Value config;       ///< a mapping, or null where no arguments are given
  bool bare = false;  ///< given as a name alone
  Place place;
};

/// `what` is for messages: "initializer". Y12 when the value has none of the forms.
Identifier read_identifier(const Value& value, std::string_view what);

/// Y30: "unknown initializer 'zeroes'; did you mean 'zeros'? known: ...".
[[noreturn]] void fail_unknown(const Identifier& identifier, std::string_view what, const std::vector<std::string>& known);

/// One entry of an explicit list: the names by which an object is known, its class's name first.
template <class Made>
struct NamedMaker {
  std::vector<std::string_view> names;
  Made (*make)();
};

/// The entry with this name; Y30 with the nearest one when there is none.
template <class Made>
Made make_named(std::span<const NamedMaker<Made>> list, const Identifier& identifier, std::string_view what) {
  std::vector<std::string> known;
  for (const NamedMaker<Made>& entry : list) {
    for (const std::string_view name : entry.names) {
      if (name == identifier.name) return entry.make();
      known.emplace_back(name);
    }
  }
  fail_unknown(identifier, what, known);
}

}  // namespace lockstep
