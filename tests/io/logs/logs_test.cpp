#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "io/logs/csv_log.h"
#include "io/logs/event_log.h"
#include "io/logs/json_lines.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class Logs : public testing::Test {
 protected:
  Logs() { fs::create_directories(folder_); }
  ~Logs() override { fs::remove_all(folder_); }
  static std::string text_in(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write_rows(int64_t first, int64_t last) const {
    CsvLog log(csv_, {"step", "loss"});
    for (int64_t step = first; step <= last; ++step) log.append(std::vector<Cell>{step, 1.0f / static_cast<float>(step)});
  }

  const std::string folder_ = fs::temp_directory_path() / ("lockstep_logs_" + std::to_string(getpid()));
  const std::string csv_ = folder_ + "/metrics.csv";
  const std::string lines_ = folder_ + "/metrics.jsonl";
};

// 0.1f is 0.100000001490116...; the shortest decimal that reads back as it is 0.1.
TEST_F(Logs, WriteTheShortestTextThatReadsBackAsTheSameFloat) {
  {
    CsvLog log(csv_, {"step", "epoch", "samples", "loss", "accuracy"});
    log.append(std::vector<Cell>{int64_t{1}, int64_t{1}, int64_t{128}, 0.1f, 1.0f / 3.0f});
    log.append(std::vector<Cell>{int64_t{2}, int64_t{1}, int64_t{256}, 1e-5f, std::monostate()});
    log.append(std::vector<Cell>{int64_t{3}, int64_t{1}, int64_t{384}, -std::nanf(""), -std::numeric_limits<float>::infinity()});
    log.append(std::vector<Cell>{int64_t{4}, int64_t{1}, int64_t{512}, 16777216.0f, 0.1});
  }
  EXPECT_EQ(text_in(csv_),
            "step,epoch,samples,loss,accuracy\n"
            "1,1,128,0.1,0.33333334\n"
            "2,1,256,1e-05,\n"
            "3,1,384,nan,-inf\n"
            "4,1,512,16777216,0.1\n");
}

TEST_F(Logs, QuoteNamesThatHoldACommaOrAQuote) {
  { CsvLog log(csv_, {"step", "a,b", "say \"x\""}); }
  EXPECT_EQ(text_in(csv_), "step,\"a,b\",\"say \"\"x\"\"\"\n");
}

TEST_F(Logs, ThatWereCutBackAndGoOnEqualThoseThatWereNeverInterrupted) {
  write_rows(1, 9);
  const std::string whole = text_in(csv_);
  fs::remove(csv_);

  write_rows(1, 7);
  std::ofstream(csv_, std::ios::app) << "8,0.1";  // a kill in the middle of a row
  EXPECT_EQ(cut_back_csv(csv_, 5), 2);
  write_rows(6, 9);
  EXPECT_EQ(text_in(csv_), whole);
  EXPECT_EQ(fs::path(*fs::directory_iterator(folder_)).filename(), "metrics.csv");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Logs, WithNothingBehindThePositionStayAsTheyAre) {
  write_rows(1, 3);
  const auto before = fs::last_write_time(csv_);
  EXPECT_EQ(cut_back_csv(csv_, 3), 0);
  EXPECT_EQ(fs::last_write_time(csv_), before);
  EXPECT_EQ(cut_back_csv(folder_ + "/absent.csv", 3), 0);
}

TEST_F(Logs, WithAHeaderThatWasCutShortBeginAgain) {
  std::ofstream(csv_) << "step,lo";
  EXPECT_EQ(cut_back_csv(csv_, 3), 0);
  write_rows(1, 1);
  EXPECT_EQ(text_in(csv_), "step,loss\n1,1\n");
}

TEST_F(Logs, WithOtherColumnsAreRefused) {
  write_rows(1, 1);
  try {
    CsvLog log(csv_, {"step", "loss", "accuracy"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "error[W31] " + csv_ + ": has the columns 'step,loss', this run logs 'step,loss,accuracy'; move the file away or choose another run_folder");
  }
}

TEST_F(Logs, WriteJsonLinesThatStrictReadersTake) {
  {
    JsonLines log(lines_);
    log.append(std::vector<JsonLines::Member>{{"step", int64_t{1}}, {"loss", 0.1f}, {"seconds", 0.25}, {"event", std::string_view("a \"b\"\n\\")}, {"rate", std::nanf("")}, {"none", {}}});
  }
  EXPECT_EQ(text_in(lines_), R"({"step": 1, "loss": 0.1, "seconds": 0.25, "event": "a \"b\"\u000a\\", "rate": null, "none": null})"
                             "\n");
}

TEST_F(Logs, CutJsonLinesBackByTheirStepAndKeepThoseWithoutOne) {
  std::ofstream(lines_) << "{\"event\": \"start\"}\n{\"step\": 5}\n{\"step\": 6}\nrubbish\n{\"step\": 5, \"late\": true}\n{\"step\": 4";
  EXPECT_EQ(cut_back_json_lines(lines_, "step", 5), 2);
  EXPECT_EQ(text_in(lines_), "{\"event\": \"start\"}\n{\"step\": 5}\n{\"step\": 5, \"late\": true}\n");
}

TEST_F(Logs, KeepRowsThatADiskDoesNotTakeAndWriteThemLater) {
  const pid_t child = fork();
  if (child == 0) {
    // SIGXFSZ would end the process if the log let it.
    rlimit limit{12, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    CsvLog log(csv_, {"step", "loss"});
    log.append(std::vector<Cell>{int64_t{1}, 0.5f});
    log.append(std::vector<Cell>{int64_t{2}, 0.25f});
    const auto failure = log.failure();
    if (!failure || failure->find("File too large") == std::string::npos) _exit(1);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    log.append(std::vector<Cell>{int64_t{3}, 0.125f});
    _exit(log.failure() ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(text_in(csv_), "step,loss\n1,0.5\n2,0.25\n3,0.125\n");
}

// The bytes that TensorBoard 2.21.0's RecordWriter and event messages give for the same events.
TEST_F(Logs, FrameEventsAsTensorBoardDoes) {
  {
    EventLog log(folder_, 1.5);
    log.scalar(2.5, 300, "loss", 0.5f);
    EXPECT_EQ(fs::path(log.path()).filename().string().substr(0, 31), "events.out.tfevents.0000000001.");
  }
  const std::string bytes = text_in(fs::directory_iterator(folder_)->path());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hexadecimal;
  for (const char c : bytes) {
    hexadecimal += digits[static_cast<unsigned char>(c) >> 4];
    hexadecimal += digits[static_cast<unsigned char>(c) & 15];
  }
  EXPECT_EQ(hexadecimal, "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c1b000000000000001a0d9e1309000000000000044010ac022a0d0a0b0a046c6f7373150000003ff04bc4a2");
}

TEST_F(Logs, CutEventsBackByTheirStepWithWhatIsDamaged) {
  const auto write = [&](int64_t first, int64_t last) {
    EventLog log(folder_, 10);
    for (int64_t step = first; step <= last; ++step) log.scalar(static_cast<double>(step), step, "loss", static_cast<float>(step));
    return log.path();
  };
  const std::string path = write(1, 6);
  const std::string whole = text_in(path);
  fs::remove(path);

  write(1, 5);
  std::ofstream(path, std::ios::app | std::ios::binary) << whole.substr(0, 20);
  EXPECT_EQ(cut_back_events(folder_, 3), 2);
  EXPECT_EQ(write(4, 6), path);
  EXPECT_EQ(text_in(path), whole);
}

TEST_F(Logs, NameTheReasonWhenTheyCannotBeOpened) {
  try {
    CsvLog log(folder_ + "/absent/metrics.csv", {"step"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "error[W30] " + folder_ + "/absent/metrics.csv: the log cannot be opened: No such file or directory");
  }
}

}  // namespace
}  // namespace lockstep
