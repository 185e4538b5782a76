#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::test {

struct Outcome {
  int code = -1;
  std::string output;  ///< standard output and error together
};

/// Runs a shell command with a limit in seconds; past it the command is killed and the code is 124 or 137.
inline Outcome run_shell(const std::string& command, int limit_seconds = 60) {
  const std::string file = std::filesystem::temp_directory_path() / ("lockstep_out_" + std::to_string(::getpid()));
  const std::string whole = "timeout -k 5 " + std::to_string(limit_seconds) + " sh -c '" + command + "' > " + file + " 2>&1";
  const int status = std::system(whole.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  outcome.output = text.str();
  std::filesystem::remove(file);
  return outcome;
}

/// The program on one rank, or N ranks as threads.
inline Outcome run_program(const std::string& arguments, int threads = 1) {
  return run_shell(std::string(LOCKSTEP_PROGRAM) + " " + arguments + (threads > 1 ? " --ranks " + std::to_string(threads) : ""));
}

/// The program under mpirun.
inline Outcome run_mpi(const std::string& arguments, int ranks, int limit_seconds = 60) {
  return run_shell("mpirun --oversubscribe --bind-to none -n " + std::to_string(ranks) + " " + LOCKSTEP_PROGRAM + " " + arguments, limit_seconds);
}

/// A folder of this test that is gone with it.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "lockstep_test_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace lockstep::test
