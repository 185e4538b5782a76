#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// Where a run's messages go: standard output for what happens, standard error for warnings. Ranks other than 0 stay silent.
class Log {
 public:
  /// `speaks`: only then is anything written.
  explicit Log(bool speaks, bool quiet = false);
  ~Log();

  /// One line of what happens.
  void info(std::string_view line) const;
  /// "warning: ..." on standard error.
  void warn(std::string_view line) const;
  /// A result that other programs read: never dropped by --quiet, nothing before or after it on its line.
  void result(std::string_view text) const;
  bool speaks() const { return speaks_; }

 private:
  struct Sinks;
  std::unique_ptr<Sinks> sinks_;
  bool speaks_;
  bool quiet_;
};

}  // namespace lockstep
