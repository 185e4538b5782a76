#include "io/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <functional>
#include <limits>

#include "tests/io/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error("none", "", "no error");
}

/// Steps 400 and 500.
class TwoCheckpoints : public testing::Test {
 protected:
  TwoCheckpoints() {
    commit_checkpoint(folder_, content_of(400), 3);
    commit_checkpoint(folder_, content_of(500), 3);
  }
  /// The one message about what was skipped.
  Problem skipped() const {
    const Search search = find_newest(folder_);
    EXPECT_EQ(search.newest.value().step, 400);
    EXPECT_EQ(search.skipped.size(), 1u);
    return search.skipped.at(0);
  }

  const TemporaryFolder run_;
  const std::string folder_ = run_ / "checkpoints";
  const std::string newest_ = folder_ + "/step_00000500";
};

TEST(Checkpoint, IsFoundAsItWasCommitted) {
  const TemporaryFolder run;
  const std::string folder = run / "a/checkpoints";
  const Commit commit = commit_checkpoint(folder, content_of(500), 3);
  EXPECT_EQ(commit.folder, folder + "/step_00000500");
  EXPECT_EQ(commit.notes, std::vector<std::string>{});
  EXPECT_EQ(names_in(folder), (std::set<std::string>{"latest", "step_00000500"}));
  EXPECT_EQ(names_in(commit.folder), (std::set<std::string>{"model.keras", "custom_layers.py", "state.json", "manifest.json"}));
  EXPECT_EQ(fs::read_symlink(folder + "/latest"), "step_00000500");

  const Search search = find_newest(folder);
  ASSERT_TRUE(search.newest);
  EXPECT_EQ(search.newest->folder, commit.folder);
  EXPECT_EQ(search.newest->step, 500);
  EXPECT_EQ(search.newest->state, content_of(500).state);
  EXPECT_EQ(search.newest->manifest.facts.at("processor").as_string(), "test");
  EXPECT_EQ(search.newest->manifest.tensors.at(0).shape, Shape{4});
  EXPECT_TRUE(search.skipped.empty());
  EXPECT_TRUE(search.notes.empty());
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(commit.folder)) bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_EQ(commit.bytes, bytes);
}

TEST(Checkpoint, IsAFunctionOfItsContent) {
  const TemporaryFolder a;
  const TemporaryFolder b;
  for (const TemporaryFolder* folder : {&a, &b}) commit_checkpoint(folder->path(), content_of(7), 2);
  for (const std::string& name : names_in(a / "step_00000007")) EXPECT_EQ(text_in(a / "step_00000007/" + name), text_in(b / "step_00000007/" + name)) << name;
}

TEST(Checkpoint, IsAFreshStartWhereThereIsNoFolderOrOnlyOtherThings) {
  const TemporaryFolder run;
  EXPECT_FALSE(find_newest(run / "absent").newest);
  fs::create_directory(run / "step_5");
  fs::create_directory(run / ".tmp-step_00000005-elsewhere-1");
  write_text_to(run / "notes.txt", "");
  const Search search = find_newest(run.path());
  EXPECT_FALSE(search.newest);
  EXPECT_TRUE(search.skipped.empty());
}

TEST_F(TwoCheckpoints, FallsBackWhenTheManifestIsMissing) {
  fs::remove(newest_ + "/manifest.json");
  EXPECT_EQ(skipped().code, "C01");
  EXPECT_EQ(skipped().place, folder_);
  EXPECT_EQ(skipped().message, "step_00000500 is incomplete; using step_00000400 (100 steps earlier): manifest.json is missing");
}

TEST_F(TwoCheckpoints, FallsBackWhenTheManifestIsCutShort) {
  fs::resize_file(newest_ + "/manifest.json", 20);
  EXPECT_EQ(skipped().message, "step_00000500 is incomplete; using step_00000400 (100 steps earlier): manifest.json is cut short");
}

TEST_F(TwoCheckpoints, NamesTheDamagedTensor) {
  std::string model = text_in(newest_ + "/model.keras");
  model[9] ^= 4;
  write_text_to(newest_ + "/model.keras", model);
  EXPECT_EQ(skipped().code, "C02");
  EXPECT_EQ(skipped().message, "step_00000500/model.keras: tensor 'd1/kernel' damaged; using step_00000400 (100 steps earlier)");
}

TEST_F(TwoCheckpoints, NamesTheFileWhereTheDamageIsBetweenTensors) {
  std::string model = text_in(newest_ + "/model.keras");
  model[0] ^= 4;
  write_text_to(newest_ + "/model.keras", model);
  EXPECT_EQ(skipped().message, "step_00000500/model.keras damaged; using step_00000400 (100 steps earlier)");
}

TEST_F(TwoCheckpoints, FallsBackWhenAFileIsTruncated) {
  fs::resize_file(newest_ + "/model.keras", 11);
  EXPECT_EQ(skipped().code, "C02");
  EXPECT_EQ(skipped().message, "step_00000500/model.keras: tensor 'd1/kernel' damaged; using step_00000400 (100 steps earlier): it has 11 bytes instead of 12");
}

TEST_F(TwoCheckpoints, FallsBackWhenAFileIsMissing) {
  fs::remove(newest_ + "/custom_layers.py");
  EXPECT_EQ(skipped().code, "C05");
  EXPECT_EQ(skipped().message, "step_00000500 is incomplete; using step_00000400 (100 steps earlier): custom_layers.py is missing");
}

TEST_F(TwoCheckpoints, SkipsANewerFormat) {
  Manifest manifest = verify_checkpoint(newest_).manifest;
  manifest.format = 3;
  write_text_to(newest_ + "/manifest.json", manifest_text(manifest));
  EXPECT_EQ(skipped().code, "C03");
  EXPECT_EQ(skipped().message, "step_00000500 was written by format 3, this program reads <= 1; using step_00000400 (100 steps earlier): use the newer lockstep");
}

TEST_F(TwoCheckpoints, SkipsAFolderThatWasRenamedToAnotherStep) {
  fs::rename(newest_, folder_ + "/step_00000600");
  EXPECT_EQ(skipped().message, "step_00000600 is incomplete; using step_00000400 (200 steps earlier): its manifest is of step 500");
}

TEST_F(TwoCheckpoints, RefusesNamesThatLeadOutOfTheFolder) {
  write_text_to(run_ / "secret", "weights ");
  const Manifest good = verify_checkpoint(newest_).manifest;
  for (const std::string name : {"../../secret", "/etc/passwd", "..", ".", "", "a/b"}) {
    Manifest forged = good;
    forged.files[0].name = name;
    write_text_to(newest_ + "/manifest.json", manifest_text(forged));
    EXPECT_EQ(skipped().code, "C10") << name;
    EXPECT_NE(skipped().message.find("'" + name + "', which is outside the folder"), std::string::npos) << skipped().message;
  }
}

TEST_F(TwoCheckpoints, RefusesASymbolicLinkAmongItsFiles) {
  fs::copy_file(newest_ + "/model.keras", run_ / "outside");
  fs::remove(newest_ + "/model.keras");
  fs::create_symlink(run_ / "outside", newest_ + "/model.keras");
  EXPECT_EQ(skipped().code, "C10");
  EXPECT_EQ(skipped().message, "step_00000500/model.keras is a symbolic link; using step_00000400 (100 steps earlier): a checkpoint holds its files itself");
}

TEST_F(TwoCheckpoints, RefusesAPipeAmongItsFilesWithoutWaiting) {
  fs::remove(newest_ + "/model.keras");
  ASSERT_EQ(mkfifo((newest_ + "/model.keras").c_str(), 0600), 0);
  EXPECT_EQ(skipped().code, "C10");
}

TEST_F(TwoCheckpoints, ListsEachOneWhenAllAreBad) {
  fs::remove(folder_ + "/step_00000400/manifest.json");
  fs::remove(newest_ + "/custom_layers.py");
  const Error error = error_of([&] { find_newest(folder_); });
  EXPECT_EQ(error.exit_code(), ExitCode::data);
  ASSERT_EQ(error.problems().size(), 3u);
  EXPECT_EQ(error.problems()[0].text(), "error[C05] " + folder_ + ": step_00000500 is incomplete: custom_layers.py is missing");
  EXPECT_EQ(error.problems()[1].text(), "error[C01] " + folder_ + ": step_00000400 is incomplete: manifest.json is missing");
  EXPECT_NE(error.problems()[2].message.find("no checkpoint here is good"), std::string::npos);
}

TEST_F(TwoCheckpoints, DetectsAFlippedBitInEachByte) {
  for (const std::string& name : names_in(newest_)) {
    const std::string good = text_in(newest_ + "/" + name);
    std::fstream file(newest_ + "/" + name, std::ios::binary | std::ios::in | std::ios::out);
    const auto put = [&](size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
    for (size_t i = 0; i < good.size(); ++i) {
      put(i, static_cast<char>(good[i] ^ (1 << (i % 8))));
      ASSERT_EQ(find_newest(folder_).newest->step, 400) << name << " byte " << i;
      put(i, good[i]);
    }
  }
  EXPECT_EQ(find_newest(folder_).newest->step, 500);
}

TEST_F(TwoCheckpoints, NotesALatestThatLeadsNowhereAndLooksItself) {
  fs::remove(folder_ + "/latest");
  fs::create_symlink("step_00000900", folder_ + "/latest");
  const Search search = find_newest(folder_);
  EXPECT_EQ(search.newest->step, 500);
  ASSERT_EQ(search.notes.size(), 1u);
  EXPECT_EQ(search.notes[0].code, "C06");
}

TEST_F(TwoCheckpoints, NotesAFolderIntoWhichOthersMayWrite) {
  chmod(folder_.c_str(), 0777);
  const Search search = find_newest(folder_);
  ASSERT_EQ(search.notes.size(), 1u);
  EXPECT_EQ(search.notes[0].code, "C07");
  EXPECT_EQ(search.notes[0].place, folder_);
}

TEST_F(TwoCheckpoints, SaysWhatTheStateLacks) {
  const FoundCheckpoint found = verify_checkpoint(newest_);
  found.require_state({"position"});
  const Error error = error_of([&] { found.require_state({"position", "seed", "replicas"}); });
  EXPECT_EQ(error.problems()[0].code, "C08");
  EXPECT_NE(error.problems()[0].message.find("cannot resume exactly: state.json lacks 'seed', 'replicas'"), std::string::npos) << error.what();
}

TEST_F(TwoCheckpoints, AreFoundByRunFolderByTheirFolderAndOneByOne) {
  EXPECT_EQ(find_checkpoint(run_.path())->newest->step, 500);
  EXPECT_EQ(find_checkpoint(folder_ + "/")->newest->step, 500);
  EXPECT_EQ(find_checkpoint(folder_ + "/step_00000400")->newest->step, 400);
  EXPECT_FALSE(find_checkpoint(newest_ + "/model.keras"));
  fs::remove(newest_ + "/model.keras");
  EXPECT_EQ(error_of([&] { find_checkpoint(newest_); }).problems()[0].text(), "error[C05] " + newest_ + ": step_00000500 is incomplete: model.keras is missing");
}

TEST(Commit, KeepsTheNewestAndAtLeastTwo) {
  const TemporaryFolder run;
  for (int64_t step = 1; step <= 5; ++step) commit_checkpoint(run.path(), content_of(step), 3);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000003", "step_00000004", "step_00000005"}));
  commit_checkpoint(run.path(), content_of(6), 0);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000005", "step_00000006"}));
}

TEST(Commit, DoesNotCountABadCheckpointAmongThoseItKeeps) {
  const TemporaryFolder run;
  for (int64_t step = 1; step <= 2; ++step) commit_checkpoint(run.path(), content_of(step), 2);
  fs::remove(run / "step_00000002/state.json");
  commit_checkpoint(run.path(), content_of(3), 2);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000001", "step_00000002", "step_00000003"}));
  commit_checkpoint(run.path(), content_of(4), 2);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000003", "step_00000004"}));
}

TEST(Commit, OfTheSameCheckpointTwiceIsFine) {
  const TemporaryFolder run;
  EXPECT_FALSE(commit_checkpoint(run.path(), content_of(1), 2).was_there);
  EXPECT_TRUE(commit_checkpoint(run.path(), content_of(1), 2).was_there);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000001"}));
}

TEST(Commit, TakesThePlaceOfABadOrAnotherCheckpointOfItsStep) {
  const TemporaryFolder run;
  commit_checkpoint(run.path(), content_of(1, "a"), 2);
  fs::remove(run / "step_00000001/manifest.json");
  EXPECT_FALSE(commit_checkpoint(run.path(), content_of(1, "a"), 2).was_there);
  commit_checkpoint(run.path(), content_of(1, "b"), 2);
  EXPECT_EQ(find_newest(run.path()).newest->state.at("mark").as_string(), "b");
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000001"}));
}

// In a state.json, JSON has no infinity: without the check the checkpoint would be written and never read.
TEST(Commit, RefusesAStateThatCouldNotBeReadBack) {
  const TemporaryFolder run;
  CheckpointContent content = content_of(1);
  content.state.set("best", std::numeric_limits<double>::infinity());
  EXPECT_EQ(error_of([&] { commit_checkpoint(run.path(), content, 2); }).exit_code(), ExitCode::storage);
  EXPECT_TRUE(names_in(run.path()).empty());
}

TEST(Commit, PastTheFileSizeLimitIsAnErrorAndNoDeath) {
  const TemporaryFolder run;
  commit_checkpoint(run.path(), content_of(1), 2);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    CheckpointContent content = content_of(2);
    content.files.push_back({"large", std::vector<std::byte>(10000)});
    const Error error = error_of([&] { commit_checkpoint(run.path(), content, 2); });
    const bool told = error.problems()[0].code == "W01" && error.problems()[0].message.find("File too large") != std::string::npos;
    _exit(told && error.exit_code() == ExitCode::storage ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{"latest", "step_00000001"}));
}

TEST(CheckWritable, LeavesNothingBehindAndNamesTheWayOut) {
  const TemporaryFolder run;
  check_writable(run / "checkpoints");
  EXPECT_TRUE(names_in(run / "checkpoints").empty());
  write_text_to(run / "file", "");
  const Error error = error_of([&] { check_writable(run / "file"); });
  EXPECT_EQ(error.problems()[0].code, "W02");
  EXPECT_NE(error.problems()[0].message.find("'run_folder'"), std::string::npos);
}

TEST(Sweep, RemovesWhatDeadProcessesOfThisHostLeft) {
  const TemporaryFolder run;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  std::string host(256, '\0');
  gethostname(host.data(), host.size());
  host.resize(host.find('\0'));
  const std::string dead = ".tmp-step_00000001-" + host + "-" + std::to_string(child);
  const std::string alive = ".tmp-step_00000001-" + host + "-" + std::to_string(getppid());
  const std::string elsewhere = ".tmp-step_00000001-other-host-7";
  for (const std::string& name : {dead, alive, elsewhere}) {
    fs::create_directory(run / name);
    write_text_to(run / name + "/model.keras", "half");
  }
  EXPECT_EQ(sweep_temporary_folders(run.path(), Stale::dead_processes), 1);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{alive, elsewhere}));
  EXPECT_EQ(sweep_temporary_folders(run.path(), Stale::every), 2);
  EXPECT_TRUE(names_in(run.path()).empty());
}

}  // namespace
}  // namespace lockstep
