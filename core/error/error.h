#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What the process tells its launcher; README.md has the table that users see.
enum class ExitCode {
  done = 0,
  job = 2,         ///< job file or command line
  data = 3,        ///< model, checkpoint or data
  launch = 4,      ///< launch or device
  peer = 5,        ///< peer lost or stalled: try again
  numeric = 6,     ///< numeric: do not try again
  internal = 70,   ///< a fault of the program
  storage = 74,    ///< a checkpoint could not be written
  preempted = 75,  ///< stopped by a signal after a commit: try again
};

/// One thing that is wrong: what was found, what was expected, the way out.
struct Problem {
  std::string code;     ///< family letter and two digits: "Y09"
  std::string place;    ///< "job.yaml:14:5", or "model.h5: /model_weights/dense/kernel:0"; may be empty
  std::string message;  ///< "unknown key 'epoch' in 'train'; did you mean 'epochs'?"
  std::string excerpt;  ///< for text files: the line and a caret below it; else empty

  /// "error[Y09] job.yaml:14:5: unknown key ..." and the excerpt on lines of its own.
  std::string text() const;
};

/// Thrown where a problem is known, caught once in main. Holds every problem of one file when a reader collects them.
class Error : public std::exception {
 public:
  Error(std::string code, std::string place, std::string message);
  explicit Error(std::vector<Problem> problems);

  const char* what() const noexcept override { return text_.c_str(); }
  const std::vector<Problem>& problems() const { return problems_; }
  /// From the family letter of the first problem.
  ExitCode exit_code() const;

 private:
  std::vector<Problem> problems_;
  std::string text_;
};

/// Families: Y job, H HDF5, Z .keras, S TensorFlow, D data, C checkpoint, M model, L launch and device, P peer, N numeric, W storage, X internal.
ExitCode exit_code_of(std::string_view code);

/// The candidate nearest to `word` by edit distance, or empty when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'epochs'?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Control characters as \xNN, so that a name from a file can't drive a terminal.
std::string printable(std::string_view text);

}  // namespace lockstep
