#include "io/checkpoint/checkpoint_writer.h"

#include <csignal>
#include <exception>
#include <memory>
#include <utility>

namespace lockstep {

namespace {

/// While it lives, threads that start take no signals but those of their own faults.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&held, fault);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, int64_t keep, FileOperations& files) : folder_(std::move(folder)), keep_(keep), files_(files) {
  const SignalsHeld held;
  thread_ = std::thread([this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::save(int64_t step, std::function<CheckpointContent()> make) {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [this] { return !job_; });
  job_ = Job{step, std::move(make)};
  guard.unlock();
  changed_.notify_all();
}

void CheckpointWriter::save(CheckpointContent content) {
  const int64_t step = content.step;
  // Shared, because std::function wants to be copyable.
  auto kept = std::make_shared<CheckpointContent>(std::move(content));
  save(step, [kept] { return std::move(*kept); });
}

bool CheckpointWriter::busy() const {
  const std::lock_guard guard(mutex_);
  return job_.has_value();
}

std::optional<CheckpointWriter::Outcome> CheckpointWriter::outcome() {
  const std::lock_guard guard(mutex_);
  if (outcomes_.empty()) return std::nullopt;
  Outcome oldest = std::move(outcomes_.front());
  outcomes_.pop_front();
  return oldest;
}

void CheckpointWriter::wait() {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [this] { return !job_; });
}

int64_t CheckpointWriter::failures_in_a_row() const {
  const std::lock_guard guard(mutex_);
  return failures_;
}

CheckpointWriter::Outcome CheckpointWriter::carry_out(const Job& job) {
  try {
    return {job.step, commit_checkpoint(folder_, job.make(), keep_, files_), std::nullopt};
  } catch (const Error& error) {
    return {job.step, std::nullopt, error};
  } catch (const std::exception& failure) {
    return {job.step, std::nullopt, Error("W01", folder_, "the checkpoint of step " + std::to_string(job.step) + " was not saved: " + failure.what())};
  }
}

void CheckpointWriter::run() {
  std::unique_lock guard(mutex_);
  while (true) {
    changed_.wait(guard, [this] { return job_ || stopping_; });
    if (!job_) return;
    // The place stays taken while it is worked on: that is what `busy` means.
    const Job& job = *job_;
    guard.unlock();
    Outcome outcome = carry_out(job);
    guard.lock();
    failures_ = outcome.error ? failures_ + 1 : 0;
    outcomes_.push_back(std::move(outcome));
    job_.reset();
    changed_.notify_all();
  }
}

}  // namespace lockstep
