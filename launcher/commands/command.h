#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error/error.h"

namespace lockstep {

/// What every command may be told.
struct GlobalOptions {
  int threads = 0;     ///< --ranks
  bool quiet = false;  ///< --quiet
};

/// A command of the program: a file each, and a line in commands.cpp.
struct Command {
  std::string_view name;
  std::string_view summary;  ///< one sentence, for --help
  /// Adds arguments and options to the sub-command, and returns what runs it once they are parsed.
  std::function<std::function<ExitCode()>(CLI::App&, const GlobalOptions&)> set_up;
};

const std::vector<Command>& commands();

}  // namespace lockstep
