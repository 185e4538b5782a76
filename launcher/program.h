#pragma once

namespace lockstep {

/// The whole program: parses the command line, runs the command, prints what went wrong once, and gives the exit code.
int run_program(int count, const char* const* arguments);

}  // namespace lockstep
