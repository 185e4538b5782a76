#pragma once

#include <sys/types.h>

#include <string>

namespace lockstep {

/// This machine's name, with nothing in it that a file's name can't hold.
std::string host_name();
/// False when no process has this number on this machine.
bool process_exists(pid_t process);
/// When a process was started, in clock ticks since the machine's start; 0 when it is gone. Tells apart two processes that had one number.
int64_t start_ticks(pid_t process);

}  // namespace lockstep
