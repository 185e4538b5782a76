#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// A file that grows at its end. What could not be written (a full disk) is kept and tried again with the next call, so that nothing is lost or doubled
/// while the program lives: a log that can't be written stops no training.
class AppendFile {
 public:
  /// Opens or makes the file. Throws W30 when it can't.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const;
  void append(std::string_view bytes);
  /// Makes what was written durable, so that a resume finds all rows up to a checkpoint.
  void sync();
  /// The system's reason while something is waiting to be written.
  std::optional<std::string> failure() const;

 private:
  void write_waiting();

  std::string path_;
  int file_ = -1;
  std::string waiting_;
  int reason_ = 0;
};

/// All of a file; empty when there is none. Throws W30 when it can't be read.
std::string file_contents(const std::string& path);

/// Replaces a file, in one step, by the lines for which `keep` is true; a last line without its end is dropped. Untouched when nothing goes.
/// Returns how many whole lines went. Throws W10.
int64_t keep_lines(const std::string& path, const std::function<bool(std::string_view line)>& keep);

}  // namespace lockstep
