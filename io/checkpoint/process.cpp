#include "io/checkpoint/process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lockstep {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string result(name.data());
  std::replace(result.begin(), result.end(), '/', '_');
  return result;
}

bool process_exists(pid_t process) { return kill(process, 0) == 0 || errno == EPERM; }

int64_t start_ticks(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // proc(5): field 2 is the program's name in brackets and may hold anything; field 22 is the start.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  int64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

}  // namespace lockstep
