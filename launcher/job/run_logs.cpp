#include "launcher/job/run_logs.h"

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

namespace lockstep {

namespace {

double now_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

RunLogs::RunLogs(const std::string& folder, const std::vector<std::string>& step_names, const std::vector<std::string>& epoch_names, int64_t last_step, int64_t last_epoch, std::vector<std::string>& notes) : step_names_(step_names), epoch_names_(epoch_names) {
  const std::filesystem::path root = folder;
  const std::string metrics = root / "metrics.csv", epochs = root / "epochs.csv", lines = root / "metrics.jsonl";
  const int64_t rows = cut_back_csv(metrics, last_step) + cut_back_csv(epochs, last_epoch);
  cut_back_json_lines(lines, "step", last_step);
  cut_back_events(folder, last_step);
  if (rows > 0) notes.push_back(fmt::format("metrics.csv and epochs.csv cut back to step {}: {} newer rows go, their steps come again", last_step, rows));
  std::vector<std::string> columns = {"step", "epoch", "samples"};
  columns.insert(columns.end(), step_names.begin(), step_names.end());
  steps_ = std::make_unique<CsvLog>(metrics, columns);
  columns = {"epoch"};
  columns.insert(columns.end(), epoch_names.begin(), epoch_names.end());
  epochs_ = std::make_unique<CsvLog>(epochs, columns);
  lines_ = std::make_unique<JsonLines>(lines);
  events_ = std::make_unique<EventLog>(folder, now_seconds());
}

void RunLogs::step(int64_t step, int64_t epoch, int64_t samples, std::span<const float> values, double samples_per_second) {
  const double now = now_seconds();
  cells_.assign({step, epoch, samples});
  members_.assign({{"time", now}, {"step", step}, {"epoch", epoch}, {"samples", samples}, {"samples_per_second", samples_per_second}});
  for (size_t i = 0; i < values.size(); ++i) {
    cells_.emplace_back(values[i]);
    members_.push_back({step_names_[i], values[i]});
    events_->scalar(now, step, step_names_[i], values[i]);
  }
  steps_->append(cells_);
  lines_->append(members_);
}

void RunLogs::epoch(int64_t epoch, std::span<const float> values, int64_t step) {
  const double now = now_seconds();
  cells_.assign({epoch});
  for (size_t i = 0; i < values.size(); ++i) {
    cells_.emplace_back(values[i]);
    if (epoch_names_[i].rfind("val_", 0) == 0) events_->scalar(now, step, epoch_names_[i], values[i]);
  }
  epochs_->append(cells_);
}

void RunLogs::sync() {
  steps_->sync();
  epochs_->sync();
  lines_->sync();
  events_->sync();
}

}  // namespace lockstep
