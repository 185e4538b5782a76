#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/logs/csv_log.h"
#include "io/logs/event_log.h"
#include "io/logs/json_lines.h"

namespace lockstep {

/// The files of a run that grow: metrics.csv, epochs.csv (no clock), metrics.jsonl and TensorBoard's events (with clock). Rank 0's.
class RunLogs {
 public:
  /// Cuts the files back to a step and an epoch (a resume) and goes on with them. `notes` tells what was cut.
  RunLogs(const std::string& folder, const std::vector<std::string>& step_names, const std::vector<std::string>& epoch_names, int64_t last_step, int64_t last_epoch, std::vector<std::string>& notes);

  void step(int64_t step, int64_t epoch, int64_t samples, std::span<const float> values, double samples_per_second);
  void epoch(int64_t epoch, std::span<const float> values, int64_t step);
  /// Makes the rows durable: before a checkpoint is committed.
  void sync();

 private:
  std::vector<std::string> step_names_;
  std::vector<std::string> epoch_names_;
  std::unique_ptr<CsvLog> steps_;
  std::unique_ptr<CsvLog> epochs_;
  std::unique_ptr<JsonLines> lines_;
  std::unique_ptr<EventLog> events_;
  std::vector<Cell> cells_;
  std::vector<JsonLines::Member> members_;
};

}  // namespace lockstep
