#include "io/checkpoint/lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "tests/io/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string foreign_lock(const std::string& job) {
  return R"({"host": "node-of-another", "process": 1234, "start": 99, "since": "2026-01-02 03:04:05 UTC", "job": ")" + job + "\"}\n";
}

TEST(RunLock, NamesTheHolderToTheSecondOne) {
  const TemporaryFolder run;
  const RunLock first(run.path(), "77");
  try {
    RunLock second(run.path(), "78", 0.05);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::launch);
    const std::string text = error.what();
    EXPECT_NE(text.find("error[L20] " + run.path() + ": in use by process " + std::to_string(getpid()) + " on "), std::string::npos) << text;
    EXPECT_NE(text.find("(job 77)"), std::string::npos) << text;
    EXPECT_NE(text.find("waited 0.05 s"), std::string::npos) << text;
  }
}

TEST(RunLock, IsFreeWhenItsHolderLetsGo) {
  const TemporaryFolder run;
  { const RunLock first(run.path()); }
  EXPECT_TRUE(names_in(run.path()).empty());
  const RunLock second(run.path(), "", 0);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"lock"}));
}

TEST(RunLock, WaitsForALiveHolder) {
  const TemporaryFolder run;
  auto first = std::make_unique<RunLock>(run.path());
  auto second = std::async(std::launch::async, [&] { RunLock waiting(run.path(), "", 10); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  first.reset();
  second.get();
}

TEST(RunLock, IsTakenFromAHolderThatDied) {
  const TemporaryFolder run;
  const pid_t child = fork();
  if (child == 0) {
    const RunLock held(run.path());
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_NE(text_in(run / "lock").find(std::to_string(child)), std::string::npos);
  const RunLock second(run.path(), "", 0);
  EXPECT_NE(text_in(run / "lock").find(std::to_string(getpid())), std::string::npos);
}

TEST(RunLock, IsTakenFromAHolderThatDiedBeforeItWroteItsName) {
  const TemporaryFolder run;
  write_text_to(run / "lock", "{\"host\": \"no");
  const RunLock second(run.path(), "", 0);
}

TEST(RunLock, OfAnotherHostIsRespectedUnlessItIsOurOwnJobRestarted) {
  const TemporaryFolder run;
  write_text_to(run / "lock", foreign_lock("77"));
  const std::string text = message_of([&] { RunLock(run.path(), "78", 0); });
  EXPECT_NE(text.find("in use by process 1234 on node-of-another (job 77), since 2026-01-02 03:04:05 UTC"), std::string::npos) << text;
  EXPECT_NE(text.find("if it is gone, remove " + (run / "lock")), std::string::npos) << text;
  write_text_to(run / "lock", foreign_lock(""));
  EXPECT_NE(message_of([&] { RunLock(run.path(), "", 0); }), "no error");
  write_text_to(run / "lock", foreign_lock("77"));
  const RunLock restarted(run.path(), "77", 0);
}

TEST(RunLock, NamesTheReasonWhenItCannotBeMade) {
  const TemporaryFolder run;
  const std::string text = message_of([&] { RunLock(run / "absent", "", 0); });
  EXPECT_NE(text.find("error[L21]"), std::string::npos) << text;
  EXPECT_NE(text.find("No such file or directory"), std::string::npos) << text;
}

// One of many at a time, with none that stays outside.
TEST(RunLock, IsHeldByOneAtATime) {
  const TemporaryFolder run;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        const RunLock lock(run.path(), "", 60);
        EXPECT_EQ(++inside, 1);
        ++entered;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 12);
}

}  // namespace
}  // namespace lockstep
