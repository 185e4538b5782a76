#include "launcher/job/train.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "core/trainer/forward.h"
#include "core/trainer/trainer.h"
#include "io/checkpoint/checkpoint_writer.h"
#include "io/json/json.h"
#include "launcher/environment.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/evaluate.h"
#include "launcher/job/faults.h"
#include "launcher/job/mirror.h"
#include "launcher/job/model_archive.h"
#include "launcher/job/run_folder.h"
#include "launcher/job/run_logs.h"
#include "launcher/job/run_state.h"
#include "launcher/job/signals.h"
#include "launcher/job/training_plan.h"
#include "launcher/job/warm_up.h"
#include "launcher/output_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Throws L03, L04 before anything is read when the ranks are not those that the job asks for.
Replicas agreed_replicas(const Communicator& communicator, const Job& job, int64_t stored_replicas) {
  const int ranks = communicator.size();
  if (job.launch.ranks && *job.launch.ranks != ranks) {
    throw Error("L03", "launch.ranks", fmt::format("the job asserts {} ranks, {} {} started. Start it with 'mpirun -n {} lockstep train ...', or change launch.ranks", *job.launch.ranks, ranks, ranks == 1 ? "is" : "are", *job.launch.ranks));
  }
  if (job.launch.devices && static_cast<int64_t>(job.launch.devices->size()) != ranks) {
    throw Error("L03", "launch.devices", fmt::format("the job lists {} devices, {} rank{} started", job.launch.devices->size(), ranks, ranks == 1 ? " is" : "s are"));
  }
  const int64_t replicas = stored_replicas > 0 ? stored_replicas : job.train.replicas.value_or(ranks);
  if (ranks > replicas) {
    throw Error("L04", "train.replicas", fmt::format("{} ranks for {} replicas: at most {} ranks can be started. To use more, begin a new run from this one with more replicas: restore.from: {} in a job with another name and train.replicas: {}", ranks, replicas, replicas, run_folder_path(job), ranks));
  }
  return {static_cast<int>(replicas), ranks};
}

/// Every `every` steps; 0: never.
bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

/// What rank 0 found in the run folder, for all.
struct Start {
  bool resumes = false;
  RunState state;
  std::string checkpoint;  // folder
};

/// Everything of one training, in the order in which it comes about.
class Training {
 public:
  Training(Communicator& communicator, const Log& log, const TrainRequest& request) : communicator_(communicator), log_(log), request_(request) {}

  ExitCode run() {
    blueprint_ = make_blueprint(communicator_, {request_.job, request_.overrides, "train"});
    const Job& job = blueprint_.job->job;
    faults_.emplace(job.faults, communicator_.rank());
    signals_.emplace(job.checkpoint.signals);
    refuse_unavailable(*blueprint_.job);
    if (job.watchdog.limit_seconds.number) communicator_.set_limit(*job.watchdog.limit_seconds.number);
    check_device(job.device);
    check_same_processors(communicator_);
    agreed_replicas(communicator_, job, 0);
    open_run();
    replicas_ = agreed_replicas(communicator_, job, start_.resumes ? start_.state.replicas : 0);
    open_data_sets();
    if (is_finished()) {
      log_.info(fmt::format("{}: finished before, at step {} ({} epochs); nothing to do. Raise train.{} to train on", job.name, start_.state.step, start_.state.epoch, job.train.steps ? "steps" : "epochs"));
      return ExitCode::done;
    }
    prepare();
    return loop();
  }

 private:
  const Job& job() const { return blueprint_.job->job; }
  bool is_root() const { return communicator_.rank() == 0; }

  void open_run() {
    const std::string text = on_root(communicator_, "opening the run folder", [&] {
      folder_ = open_run_folder(job());
      Value found = Value::map();
      if (folder_->checkpoint) {
        folder_->checkpoint->require_state({"epoch", "consumed", "step", "iteration", "seed", "replicas", "data"});
        found.set("state", folder_->checkpoint->state);
        found.set("folder", folder_->checkpoint->folder);
      }
      return write_json(found);
    });
    if (is_root()) {
      for (const std::string& note : folder_->notes) log_.info(note);
    }
    const Value found = read_json_text("run folder", text, "X09");
    if (const Value* state = found.find("state")) {
      start_.resumes = true;
      start_.state = read_described<RunState>(*state, "state.json");
      start_.checkpoint = found.at("folder").as_string();
      blueprint_.semantics = static_cast<int>(start_.state.semantics);
    }
  }

  void open_data_sets() {
    together(communicator_, "opening the data", [&] {
      const DataExpectation expectation = expectation_of(blueprint_);
      const auto seed = static_cast<uint64_t>(job().seed);
      OpenedData data = open_data(job().data.train.description, "data.train", expectation, seed);
      data_ = std::move(data.rows);
      data_notes_ = std::move(data.notes);
      if (job().data.validation.given()) validation_ = open_data(job().data.validation.description, "data.validation", expectation, seed).rows;
      fingerprint_ = data_->fingerprint();
      SampleOrder::Options options;
      options.rows = data_->rows();
      options.global_batch = *job().train.global_batch;
      options.seed = seed;
      options.shuffle = job().train.shuffle;
      options.drop_remainder = job().train.drop_remainder;
      options.repeat_before_batch = job().train.repeat_before_batch;
      order_.emplace(options);
    });
    const std::vector<std::string> all = communicator_.all_gather(fingerprint_, "comparing the data");
    if (const std::vector<int> odd = odd_ranks(all); !odd.empty()) {
      throw Error("D14", "data.train", fmt::format("{} ({}) reads other data than the other ranks: copies of the files differ between hosts", ranks_text(odd), communicator_.hosts()[static_cast<size_t>(odd.front())]));
    }
    if (start_.resumes) check_changes();
  }

  void check_changes() {
    const bool same_data = start_.state.data == fingerprint_;
    const JobChanges changes = compare_jobs(start_.state.job, blueprint_.job->resolved, same_data);
    for (const std::string& note : changes.noted) log_.info("changed since the checkpoint: " + note);
    std::vector<std::string> refused = changes.refused;
    if (!same_data) refused.push_back("data.train: the data's content has changed");
    if (refused.empty()) return;
    const std::string list = fmt::format("\n  {}", fmt::join(refused, "\n  "));
    if (changes.model) throw Error("C11", folder_path(), fmt::format("this run was made by a job with another model; use another name, or checkpoint.resume: never:{}", list));
    if (!request_.allow_config_change) throw Error("C11", folder_path(), fmt::format("keys of the job changed that change the run; put them back, use another name, or give --allow-config-change:{}", list));
    log_.warn(fmt::format("going on with changed keys (--allow-config-change):{}", list));
  }

  std::string folder_path() const { return run_folder_path(job()); }

  bool is_finished() const {
    if (!start_.resumes) return false;
    return job().train.steps ? start_.state.step >= *job().train.steps : start_.state.epoch >= *job().train.epochs;
  }

  /// Restore, mirror, warm up, compile.
  void prepare() {
    optimizer_ = job_optimizer(blueprint_);
    spec_ = training_spec(blueprint_, *data_);
    const int64_t rows = std::min<int64_t>(*job().train.global_batch, data_->rows());
    const StepShape shape{rows_of_replica(rows, 0, replicas_.count).size(), rows};
    const TracedModel model = traced_model(blueprint_, data_.get());
    TracedTraining traced = trace_training(model, spec_, blueprint_.weights, shape);
    numbers_ = traced.numbers;
    for (const Graph::Node& node : traced.step.graph->nodes()) prints_ = prints_ || node.op->name() == "print";
    std::vector<std::string> gradients, updates;
    for (const auto& gradient : traced.step.gradients) gradients.push_back(gradient.variable);
    for (const auto& update : traced.step.updates) updates.push_back(update.variable);
    state_.emplace(fresh_state(blueprint_, gradients, updates));
    if (!blueprint_.compile_config.is_null() && job().train.optimizer.is_null()) log_.info("optimizer: " + write_json(to_keras(*optimizer_).at("config")));
    const Restored restored = restore();
    for (const std::string& line : advice(blueprint_, spec_)) log_.warn(line);
    if (faults_->has("fresh_weights")) state_.emplace(fresh_state(blueprint_, gradients, updates));
    if (faults_->has("altered_weight")) state_->memory(0)[0] ^= std::byte{1};
    check_mirrored(communicator_, *state_, "after the restore");

    WarmUp warm_up;
    warm_up.batch = job().warm_up.batch;
    warm_up.fill = job().warm_up.fill;
    warm_up.skip = faults_->has("skip_warm_up");
    device_ = warm_up.device = device_of(communicator_, faults_->has("shared_device"));
    const std::vector<LiveReplica> live = run_warm_up(communicator_, log_, blueprint_, model, *state_, replicas_, warm_up);

    Trainer::Options options;
    options.replicas = replicas_;
    options.seed = static_cast<uint64_t>(job().seed);
    options.device = warm_up.device;
    trainer_.emplace(communicator_, options, [this, model](const StepShape& step) { return trace_training(model, spec_, blueprint_.weights, step).step; }, *state_, *optimizer_);
    if (restored_optimizer_) {
      trainer_->scatter_slots(restored_optimizer_->slots);
      trainer_->set_iteration(restored_optimizer_->iterations);
    }
    if (start_.resumes) trainer_->set_iteration(start_.state.iteration);
    trainer_->prepare(rows);
    if (validation_) {
      evaluation_.emplace([this, model](const StepShape& step) { return trace_evaluation(model, spec_, blueprint_.weights, step).step; }, *state_, options.seed, options.device);
    }
    state_now_ = start_.state;
    if (!start_.resumes) {
      state_now_.seed = job().seed;
      state_now_.replicas = replicas_.count;
      state_now_.semantics = blueprint_.semantics;
    }
    state_now_.data = fingerprint_;
    state_now_.job = blueprint_.job->resolved;
    write_receipts(restored, live);
    log_.info(fmt::format("data: {} rows, {} steps an epoch of {} rows, {} a replica", data_->rows(), order_->steps_per_epoch(), rows, shape.rows));
    for (const std::string& note : data_notes_) log_.info(note);
  }

  Restored restore() {
    RestoreRules rules = restore_rules(blueprint_, true);
    Restored restored;
    if (start_.resumes) {
      // Our own checkpoint: every name is ours, nothing may be missing or left over, the optimizer is kept.
      rules = RestoreRules{};
      rules.optimizer = OptimizerRestore::keep;
      on_root(communicator_, "opening the checkpoint", [&]() -> std::string {
        blueprint_.stored = open_model_file((fs::path(start_.checkpoint) / "model.keras").string());
        return {};
      });
      log_.info(fmt::format("resuming from {}: step {}, epoch {}", start_.checkpoint, start_.state.step, start_.state.epoch + 1));
    } else if (!blueprint_.source.empty()) {
      log_.info(fmt::format("restoring {} ({})", blueprint_.source, is_root() ? blueprint_.stored->format : ""));
    } else {
      log_.info("fresh weights");
    }
    restored = restore_state(communicator_, blueprint_, *state_, rules, optimizer_.get());
    for (const std::string& note : restored.notes) log_.info("  " + note);
    for (const std::string& warning : restored.warnings) log_.warn(warning);
    share_optimizer(restored);
    return restored;
  }

  /// Gives rank 0's slots to all: each takes its slices of them.
  void share_optimizer(const Restored& restored) {
    const std::string has = on_root(communicator_, "sharing the optimizer's state", [&] { return restored.optimizer ? std::to_string(restored.optimizer->iterations) : std::string(); });
    if (has.empty()) return;
    RestoredOptimizer shared;
    shared.iterations = std::stoll(has);
    const size_t slots = optimizer_->slots().size();
    shared.slots.assign(slots, std::vector<Tensor>(state_->variables().size()));
    for (size_t s = 0; s < slots; ++s) {
      for (size_t v = 0; v < state_->variables().size(); ++v) {
        if (!state_->variables()[v].trainable) continue;
        shared.slots[s][v] = is_root() ? restored.optimizer->slots[s][v] : Tensor(state_->variables()[v].type);
        communicator_.broadcast(shared.slots[s][v].bytes(), 0, "sharing the optimizer's state");
      }
    }
    restored_optimizer_ = std::move(shared);
  }

  void write_receipts(const Restored& restored, const std::vector<LiveReplica>& live) {
    on_root(communicator_, "writing the receipt", [&]() -> std::string {
      archive_config_ = to_keras_config(*blueprint_.model, compile_config_of(*optimizer_, keras_losses(blueprint_, spec_)));
      const fs::path folder = folder_path();
      write_text_file(folder / "config.resolved.yaml", resolved_yaml(*blueprint_.job));
      write_text_file(folder / "env.json", write_json(environment(communicator_), 2) + "\n");
      Value receipt = restored.receipt;
      if (start_.resumes) receipt.set("resumed_from", start_.checkpoint);
      Value hashes = Value::map();
      for (size_t v = 0; v < state_->variables().size(); ++v) hashes.set(state_->variables()[v].path, state_->hash(v));
      receipt.set("state", std::move(hashes));
      receipt.set("replicas", liveness_value(live));
      write_text_file(folder / "restore.json", write_json(receipt, 2) + "\n");
      std::vector<std::string> step_names, epoch_names;
      for (const LoggedNumber& number : numbers_) step_names.push_back(number.name);
      epoch_names = step_names;
      if (validation_) {
        for (const std::string& name : step_names) epoch_names.push_back("val_" + name);
      }
      std::vector<std::string> notes;
      logs_.emplace(folder.string(), step_names, epoch_names, state_now_.step, state_now_.epoch, notes);
      for (const std::string& note : notes) log_.info(note);
      writer_.emplace(checkpoints_path(folder.string()), std::max<int64_t>(2, job().checkpoint.keep));
      return {};
    });
  }

  ExitCode loop() {
    Position position = state_now_.position();
    const auto last_step = job().train.steps.value_or(INT64_MAX);
    const auto last_epoch = job().train.epochs.value_or(INT64_MAX);
    const auto audit = job().audit.every_steps;
    values_.resize(numbers_.size());
    Clock::time_point logged = Clock::now();
    int64_t logged_samples = state_now_.samples;
    bool first = true;
    while (position.step < last_step && position.epoch < last_epoch) {
      const int64_t epoch = position.epoch;
      const int64_t step = position.step;
      faults_->at_step(step + 1);
      communicator_.set_step(step + 1);
      const std::span<const int64_t> rows = order_->next(position);
      ControlWord mine;
      mine.stop = signals_->raised() ? 1 : 0;
      const StepReport& report = trainer_->step(step, *data_, rows, mine);
      if (faults_->due("flip", step + 1)) state_->memory(0)[0] ^= std::byte{1};
      if (prints_) show_printed();
      const bool stop = report.control.stop > 0;
      take_report(report, static_cast<int64_t>(rows.size()), step + 1);
      state_now_.samples += static_cast<int64_t>(rows.size());
      const bool epoch_ends = position.epoch != epoch;
      const bool ends = position.step >= last_step || position.epoch >= last_epoch;
      if (is_root() && (position.step % job().train.log_every_steps == 0 || position.step == 1)) {
        const double seconds = std::chrono::duration<double>(Clock::now() - logged).count();
        log_step(position.step, epoch + 1, first ? 0 : static_cast<double>(state_now_.samples - logged_samples) / std::max(seconds, 1e-9));
        logged = Clock::now();
        logged_samples = state_now_.samples;
      }
      first = false;
      if (epoch_ends) end_epoch(epoch + 1, position.step);
      state_now_.epoch = position.epoch;
      state_now_.consumed = position.consumed;
      state_now_.step = position.step;
      state_now_.iteration = trainer_->iteration();
      if (ends || stop || is_due(position.step, job().checkpoint.every_steps)) {
        save();
      } else if (is_due(position.step, audit)) {
        check_mirrored(communicator_, *state_, fmt::format("at step {}", position.step));
      }
      if (is_root()) tell_outcomes();
      if (stop && !ends) {
        finish_saving();
        log_.info(fmt::format("preempted at step {}: committed; the same command goes on from there", position.step));
        return ExitCode::preempted;
      }
    }
    finish_saving();
    log_.info(fmt::format("done: {} steps, {} epochs, {} samples in {}", state_now_.step, state_now_.epoch, state_now_.samples, folder_path()));
    return ExitCode::done;
  }

  /// Adds a step's sums to the epoch's and keeps its numbers; a loss that is not finite ends the run.
  void take_report(const StepReport& report, int64_t rows, int64_t step) {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const std::vector<double>& sums = report.reports.find(numbers_[i].name)->second;
      values_[i] = static_cast<float>(numbers_[i].value(sums));
      std::vector<double>& epoch = epoch_sums(i, sums.size());
      const bool is_loss = !numbers_[i].metric;
      for (size_t k = 0; k < sums.size(); ++k) epoch[k] += is_loss ? sums[k] * static_cast<double>(rows) : sums[k];
    }
    state_now_.epoch_samples += rows;
    if (!std::isfinite(values_[0])) {
      throw Error("N01", fmt::format("step {}", step), fmt::format("the loss is {}: train.nan is 'abort'. The last checkpoint is from before; look at the learning rate, the data of this step, or set optimizer.clipvalue", values_[0]));
    }
    if (report.control.not_finite > 0) {
      std::string variable = "a variable";
      for (const std::string& named : communicator_.all_gather(trainer_->not_finite_variable(), "naming the gradient that is not finite")) {
        if (!named.empty()) variable = named;
      }
      throw Error("N02", fmt::format("step {}", step - 1), fmt::format("the gradient of '{}' was not finite: train.nan is 'abort'. The last checkpoint is from before", variable));
    }
  }

  std::vector<double>& epoch_sums(size_t number, size_t size) {
    std::vector<double>& sums = state_now_.epoch_sums[numbers_[number].name];
    if (sums.size() != size) sums.assign(size, 0);
    return sums;
  }

  void log_step(int64_t step, int64_t epoch, double samples_per_second) {
    logs_->step(step, epoch, state_now_.samples, values_, samples_per_second);
    std::array<char, 512> line;
    char* end = line.data();
    const auto room = [&] { return static_cast<size_t>(line.data() + line.size() - end); };
    end = fmt::format_to_n(end, room(), "step {}  epoch {}", step, epoch).out;
    for (size_t i = 0; i < numbers_.size(); ++i) end = fmt::format_to_n(end, room(), "  {} {:.6g}", numbers_[i].name, values_[i]).out;
    if (samples_per_second > 0) end = fmt::format_to_n(end, room(), "  {:.0f} samples/s", samples_per_second).out;
    log_.info({line.data(), static_cast<size_t>(std::min<std::ptrdiff_t>(end - line.data(), static_cast<std::ptrdiff_t>(line.size())))});
  }

  void end_epoch(int64_t epoch, int64_t step) {
    std::vector<float> values;
    std::string line = fmt::format("epoch {}", epoch);
    for (const LoggedNumber& number : numbers_) {
      const std::vector<double>& sums = state_now_.epoch_sums[number.name];
      const double value = number.metric ? number.value(sums) : sums[0] / static_cast<double>(std::max<int64_t>(1, state_now_.epoch_samples));
      values.push_back(static_cast<float>(value));
      line += fmt::format("  {} {:.6g}", number.name, values.back());
    }
    if (validation_) {
      const EvaluationSums sums = evaluate(communicator_, *evaluation_, *validation_, *job().train.global_batch);
      for (const auto& [name, value] : evaluation_numbers(numbers_, sums)) {
        values.push_back(static_cast<float>(value));
        line += fmt::format("  val_{} {:.6g}", name, value);
      }
    }
    if (is_root()) {
      logs_->epoch(epoch, values, step);
      log_.info(line);
    }
    state_now_.epoch_sums.clear();
    state_now_.epoch_samples = 0;
  }

  void show_printed() {
    for (const std::string& line : gather_printed(communicator_, trainer_->take_printed(), device_)) log_.info(line);
  }

  /// A copy of the state on rank 0, written behind the training. All ranks agree on the state first.
  void save() {
    const std::string when = fmt::format("before the checkpoint of step {}", state_now_.step);
    check_mirrored(communicator_, *state_, when);
    for (const std::string& variable : communicator_.all_gather(trainer_->not_finite_variable(), "looking for values that are not finite")) {
      if (!variable.empty()) throw Error("N02", fmt::format("step {}", state_now_.step), fmt::format("the gradient of '{}' was not finite: train.nan is 'abort'. Nothing of this state was saved", variable));
    }
    std::vector<std::vector<Tensor>> slots = trainer_->gather_slots();
    if (!is_root()) return;
    logs_->sync();
    std::vector<Tensor> values;
    for (size_t v = 0; v < state_->variables().size(); ++v) values.push_back(state_->tensor(v));
    writer_->save(state_now_.step, [this, values = std::move(values), slots = std::move(slots), state = state_now_]() mutable {
      return checkpoint_content(blueprint_, archive_config_, values, {optimizer_.get(), state.iteration, std::move(slots)}, std::move(state));  // reads nothing that training changes
    });
  }

  void tell_outcomes() {
    while (const std::optional<CheckpointWriter::Outcome> outcome = writer_->outcome()) {
      if (outcome->commit) {
        log_.info(fmt::format("committed step {}", outcome->step));
        for (const std::string& note : outcome->commit->notes) log_.warn(note);
      } else {
        log_.warn(fmt::format("the checkpoint of step {} was not saved: {}; the run goes on and tries again", outcome->step, outcome->error->what()));
      }
    }
    constexpr int64_t most_failures = 3;
    if (writer_->failures_in_a_row() >= most_failures) throw Error("W03", folder_path(), fmt::format("{} checkpoints in a row could not be saved; see above. The run stops here, at step {}", most_failures, state_now_.step));
  }

  /// Waits for the last save; a run may not end without it.
  void finish_saving() {
    on_root(communicator_, "finishing the last checkpoint", [&]() -> std::string {
      writer_->wait();
      const int64_t failures = writer_->failures_in_a_row();
      tell_outcomes();
      if (failures > 0) throw Error("W03", folder_path(), fmt::format("the last {} checkpoint{} could not be saved; see above", failures, failures == 1 ? "" : "s"));
      return {};
    });
  }

  Communicator& communicator_;
  const Log& log_;
  const TrainRequest& request_;
  Blueprint blueprint_;
  std::optional<Faults> faults_;
  const SignalStack signal_stack_;
  std::optional<StopSignals> signals_;
  Replicas replicas_;
  std::optional<RunFolder> folder_;  // rank 0
  Start start_;
  std::unique_ptr<RowSource> data_;
  std::unique_ptr<RowSource> validation_;
  std::vector<std::string> data_notes_;
  std::string fingerprint_;
  std::optional<SampleOrder> order_;
  std::shared_ptr<const Optimizer> optimizer_;
  std::optional<RestoredOptimizer> restored_optimizer_;
  TrainingSpec spec_;
  std::vector<LoggedNumber> numbers_;
  bool prints_ = false;
  std::string device_;
  std::optional<MirroredState> state_;
  std::optional<Trainer> trainer_;
  std::optional<ForwardRunner> evaluation_;
  RunState state_now_;
  std::vector<float> values_;
  Value archive_config_;
  std::optional<RunLogs> logs_;               // rank 0
  std::optional<CheckpointWriter> writer_;    // rank 0
};

}  // namespace

ExitCode train(Communicator& communicator, const Log& log, const TrainRequest& request) { return Training(communicator, log, request).run(); }

}  // namespace lockstep
