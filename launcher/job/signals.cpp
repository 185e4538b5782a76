#include "launcher/job/signals.h"

#include <csignal>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

// The one thing that a handler may touch.
volatile std::sig_atomic_t stop_flag = 0;

void set_flag(int) { stop_flag = 1; }

constexpr std::array<std::pair<std::string_view, int>, 6> known = {{{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT}}};

}  // namespace

StopSignals::StopSignals(const std::vector<std::string>& names) {
  stop_flag = 0;
  for (const std::string& name : names) {
    int number = 0;
    for (const auto& [known_name, value] : known) {
      if (name == known_name || name == "SIG" + std::string(known_name)) number = value;
    }
    if (number == 0) throw Error("Y13", "checkpoint.signals", fmt::format("unknown signal '{}'; known: USR1, USR2, TERM, INT, HUP, QUIT", printable(name)));
    struct sigaction action = {};
    action.sa_handler = set_flag;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(number, &action, nullptr);
    numbers_.push_back(number);
  }
}

StopSignals::~StopSignals() {
  for (const int number : numbers_) std::signal(number, SIG_DFL);
}

SignalStack::SignalStack() : memory_(std::max<size_t>(64 * 1024, static_cast<size_t>(SIGSTKSZ))) {
  stack_t stack = {};
  stack.ss_sp = memory_.data();
  stack.ss_size = memory_.size();
  sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  stack_t off = {};
  off.ss_flags = SS_DISABLE;
  sigaltstack(&off, nullptr);
}

bool StopSignals::raised() const { return stop_flag != 0; }

}  // namespace lockstep
