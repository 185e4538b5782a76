// A save that is killed, that fails, or that loses power, at every one of its system calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <memory>

#include "io/checkpoint/checkpoint.h"
#include "tests/io/checkpoint/checkpoint_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

enum class Fault { kill_before,
                   kill_after,
                   kill_half_written,
                   fail_once,
                   fail_from_then_on };

/// The system, until the `at`-th call.
class Faulty : public FileOperations {
 public:
  Faulty(Fault fault, int at, int reason = EIO) : fault_(fault), at_(at), reason_(reason) {}
  int calls() const { return calls_; }

  int open(const std::string& path, int flags, mode_t mode) override {
    return step([&] { return FileOperations::open(path, flags, mode); });
  }
  ssize_t write(int file, const void* bytes, size_t count) override {
    if (fault_ == Fault::kill_half_written && calls_ == at_) {
      FileOperations::write(file, bytes, count / 2);
      raise(SIGKILL);
    }
    return step([&] { return FileOperations::write(file, bytes, count); });
  }
  int fsync(int file) override {
    return step([&] { return FileOperations::fsync(file); });
  }
  int close(int file) override {
    // Closes even when it says that it could not, as Linux does.
    const int result = step([] { return 0; });
    FileOperations::close(file);
    return result;
  }
  int mkdir(const std::string& path, mode_t mode) override {
    return step([&] { return FileOperations::mkdir(path, mode); });
  }
  int rename(const std::string& from, const std::string& to) override {
    return step([&] { return FileOperations::rename(from, to); });
  }
  int exchange(const std::string& a, const std::string& b) override {
    return step([&] { return FileOperations::exchange(a, b); });
  }
  int symlink(const std::string& target, const std::string& path) override {
    return step([&] { return FileOperations::symlink(target, path); });
  }
  int unlink(const std::string& path) override {
    return step([&] { return FileOperations::unlink(path); });
  }
  int rmdir(const std::string& path) override {
    return step([&] { return FileOperations::rmdir(path); });
  }

 private:
  template <class Call>
  auto step(Call&& call) -> decltype(call()) {
    const int index = calls_++;
    const bool now = index == at_;
    if (now && fault_ == Fault::kill_before) raise(SIGKILL);
    if ((now && fault_ == Fault::fail_once) || (index >= at_ && fault_ == Fault::fail_from_then_on)) {
      errno = reason_;
      return -1;
    }
    const auto result = call();
    if (now && fault_ == Fault::kill_after) raise(SIGKILL);
    return result;
  }

  Fault fault_;
  int at_;
  int reason_;
  int calls_ = 0;
};

constexpr int never = -1;

/// Steps 1 and 2 are there; the save under test keeps two.
struct Scenario {
  CheckpointContent saved;

  int64_t step() const { return saved.step; }
  std::string mark() const { return saved.state.at("mark").as_string(); }
};

class SaveUnderFire : public testing::TestWithParam<int64_t> {
 protected:
  SaveUnderFire() : scenario_{content_of(GetParam(), "new")} {
    commit_checkpoint(folder_.path(), content_of(1, "old"), 2);
    commit_checkpoint(folder_.path(), content_of(2, "old"), 2);
    fs::copy(folder_.path(), start_.path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  void begin_again() {
    fs::remove_all(folder_.path());
    fs::create_directory(folder_.path());
    fs::copy(start_.path(), folder_.path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  void save(FileOperations& files) const { commit_checkpoint(folder_.path(), scenario_.saved, 2, files); }
  int calls_of_a_save() {
    Faulty files(Fault::fail_once, never);
    save(files);
    begin_again();
    return files.calls();
  }
  bool is_new(const Search& search) const { return search.newest->step == scenario_.step() && search.newest->state.at("mark").as_string() == scenario_.mark(); }
  static bool is_old(const Search& search) { return search.newest->step == 2 && search.newest->state.at("mark").as_string() == "old"; }
  /// The old state or the new, whole, and nothing that has to be skipped.
  void expect_old_or_new(const std::string& when) const {
    const Search search = find_newest(folder_.path());
    ASSERT_TRUE(search.newest) << when;
    EXPECT_TRUE(is_old(search) || is_new(search)) << when;
    EXPECT_TRUE(search.skipped.empty()) << when;
  }

  const TemporaryFolder folder_;
  const TemporaryFolder start_;
  const Scenario scenario_;
};

// Step 3 is new; step 2 is there already with another content.
INSTANTIATE_TEST_SUITE_P(NewAndReplacedStep, SaveUnderFire, testing::Values(3, 2));

TEST_P(SaveUnderFire, KilledAtAnyCallLeavesTheOldStateOrTheNewAndTheNextSaveCleansUp) {
  const int calls = calls_of_a_save();
  ASSERT_GT(calls, 30);
  for (const Fault fault : {Fault::kill_before, Fault::kill_after, Fault::kill_half_written}) {
    for (int at = 0; at < calls; ++at) {
      begin_again();
      const pid_t child = fork();
      if (child == 0) {
        Faulty files(fault, at);
        save(files);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status) || fault == Fault::kill_half_written);
      expect_old_or_new("killed at call " + std::to_string(at));
      save(FileOperations::posix());
      ASSERT_TRUE(is_new(find_newest(folder_.path())));
      ASSERT_EQ(names_in(folder_.path()).size(), 3u) << "after call " << at;
    }
  }
}

TEST_P(SaveUnderFire, ThatFailsAtAnyCallLeavesTheOldStateElseItSaysThatItIsCommitted) {
  const int calls = calls_of_a_save();
  for (const int reason : {ENOSPC, EIO, EPERM}) {
    for (int at = 0; at < calls; ++at) {
      begin_again();
      Faulty files(Fault::fail_once, at, reason);
      const std::string when = "call " + std::to_string(at) + " failed with " + std::to_string(reason);
      try {
        save(files);
        EXPECT_TRUE(is_new(find_newest(folder_.path()))) << when;
      } catch (const Error& error) {
        EXPECT_EQ(error.exit_code(), ExitCode::storage);
        EXPECT_NE(std::string(error.what()).find(std::strerror(reason)), std::string::npos) << error.what();
        EXPECT_TRUE(is_old(find_newest(folder_.path()))) << when;
        EXPECT_EQ(names_in(folder_.path()), (std::set<std::string>{"latest", "step_00000001", "step_00000002"})) << when;
      }
    }
  }
}

TEST_P(SaveUnderFire, OnADiskThatStaysBrokenLeavesTheOldStateOrTheNew) {
  const int calls = calls_of_a_save();
  for (int at = 0; at < calls; ++at) {
    begin_again();
    Faulty files(Fault::fail_from_then_on, at);
    try {
      save(files);
      EXPECT_TRUE(is_new(find_newest(folder_.path())));
    } catch (const Error&) {
      expect_old_or_new("broken from call " + std::to_string(at));
    }
  }
}

/// Writes three bytes a call, and is interrupted before each.
class Slow : public FileOperations {
 public:
  ssize_t write(int file, const void* bytes, size_t count) override {
    if ((interrupted_ = !interrupted_)) {
      errno = EINTR;
      return -1;
    }
    return FileOperations::write(file, bytes, std::min<size_t>(count, 3));
  }

 private:
  bool interrupted_ = false;
};

TEST_P(SaveUnderFire, CompletesThroughShortAndInterruptedWrites) {
  Slow files;
  save(files);
  EXPECT_TRUE(is_new(find_newest(folder_.path())));
}

/// A file system that can't swap names.
class WithoutExchange : public FileOperations {
 public:
  int exchange(const std::string&, const std::string&) override {
    errno = EINVAL;
    return -1;
  }
};

TEST_P(SaveUnderFire, WorksWhereNamesCannotBeExchanged) {
  WithoutExchange files;
  save(files);
  EXPECT_TRUE(is_new(find_newest(folder_.path())));
  EXPECT_EQ(names_in(folder_.path()).size(), 3u);
}

/// What a disk holds while files and names wait in memory: bytes are safe after fsync of their file, names after fsync of their folder.
/// Every call is carried out, too; `visit` is called before each one.
class Disk : public FileOperations {
 public:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  struct Node {
    bool folder = false;
    std::string link;
    std::string data, safe_data;
    Entries entries, safe_entries;
    std::vector<std::function<void(Entries&)>> waiting;  // changes of names since the last fsync
  };

  explicit Disk(const std::string& root) : root_(root), node_(load(root)) {}
  std::function<void()> visit = [] {};
  const Node& node() const { return *node_; }

  int open(const std::string& path, int flags, mode_t mode) override {
    visit();
    const int file = FileOperations::open(path, flags, mode);
    if (file < 0) return file;
    if ((flags & O_CREAT) != 0) {
      auto made = std::make_shared<Node>();
      change(path, [name = name_of(path), made](Entries& entries) { entries[name] = made; });
    }
    open_[file] = find(path);
    return file;
  }
  ssize_t write(int file, const void* bytes, size_t count) override {
    visit();
    open_[file]->data.append(static_cast<const char*>(bytes), count);
    return FileOperations::write(file, bytes, count);
  }
  int fsync(int file) override {
    visit();
    Node& node = *open_[file];
    node.safe_data = node.data;
    node.safe_entries = node.entries;
    node.waiting.clear();
    return 0;
  }
  int mkdir(const std::string& path, mode_t mode) override {
    visit();
    auto made = std::make_shared<Node>();
    made->folder = true;
    change(path, [name = name_of(path), made](Entries& entries) { entries[name] = made; });
    return FileOperations::mkdir(path, mode);
  }
  // Both names are in one folder here; the file system changes them together.
  int rename(const std::string& from, const std::string& to) override {
    visit();
    const auto moved = find(from);
    change(from, [a = name_of(from), b = name_of(to), moved](Entries& entries) {
      entries.erase(a);
      entries[b] = moved;
    });
    return FileOperations::rename(from, to);
  }
  int exchange(const std::string& a, const std::string& b) override {
    visit();
    change(a, [x = name_of(a), y = name_of(b), at_x = find(a), at_y = find(b)](Entries& entries) {
      entries[x] = at_y;
      entries[y] = at_x;
    });
    return FileOperations::exchange(a, b);
  }
  int symlink(const std::string& target, const std::string& path) override {
    visit();
    auto made = std::make_shared<Node>();
    made->link = target;
    change(path, [name = name_of(path), made](Entries& entries) { entries[name] = made; });
    return FileOperations::symlink(target, path);
  }
  int unlink(const std::string& path) override {
    visit();
    const int result = FileOperations::unlink(path);
    if (result == 0) change(path, [name = name_of(path)](Entries& entries) { entries.erase(name); });
    return result;
  }
  int rmdir(const std::string& path) override {
    visit();
    change(path, [name = name_of(path)](Entries& entries) { entries.erase(name); });
    return FileOperations::rmdir(path);
  }

 private:
  static std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }
  static std::shared_ptr<Node> load(const fs::path& path) {
    auto node = std::make_shared<Node>();
    if (fs::is_symlink(path)) {
      node->link = fs::read_symlink(path);
    } else if (fs::is_directory(path)) {
      node->folder = true;
      for (const auto& entry : fs::directory_iterator(path)) node->entries[name_of(entry.path().string())] = load(entry.path());
      node->safe_entries = node->entries;
    } else {
      node->data = node->safe_data = text_in(path);
    }
    return node;
  }
  std::shared_ptr<Node> find(const std::string& path) const {
    std::shared_ptr<Node> node = node_;
    for (const fs::path& part : fs::path(path.substr(root_.size())).relative_path()) node = node->entries.at(part.string());
    return node;
  }
  void change(const std::string& path, std::function<void(Entries&)> change) {
    const auto folder = find(fs::path(path).parent_path().string());
    change(folder->entries);
    folder->waiting.push_back(std::move(change));
  }

  std::string root_;
  std::shared_ptr<Node> node_;
  std::map<int, std::shared_ptr<Node>> open_;
};

enum class Bytes { safe,
                   all,
                   none };

/// Paths and what they hold: bytes, "->" and a link's target, or "/" for a folder.
using Image = std::map<std::string, std::string>;
using Survives = std::function<bool(size_t change, size_t changes)>;

/// What a folder holds after a loss of power: of its waiting changes those that `survives` picks by number.
void add_survivors(const Disk::Node& node, const std::string& path, Bytes bytes, const Survives& survives, Image& image) {
  if (!node.link.empty()) {
    image[path] = "->" + node.link;
  } else if (!node.folder) {
    const bool synced = node.data == node.safe_data;
    image[path] = bytes == Bytes::all || synced ? node.data : bytes == Bytes::safe ? node.safe_data
                                                                                   : std::string(node.data.size(), '\0');
  } else {
    image[path] = "/";
    Disk::Entries entries = node.safe_entries;
    for (size_t i = 0; i < node.waiting.size(); ++i) {
      if (survives(i, node.waiting.size())) node.waiting[i](entries);
    }
    for (const auto& [name, child] : entries) add_survivors(*child, path + "/" + name, bytes, survives, image);
  }
}

void write_image(const Image& image, const std::string& root) {
  fs::remove_all(root);
  for (const auto& [path, contents] : image) {
    if (contents == "/") {
      fs::create_directory(root + path);
    } else if (contents.starts_with("->")) {
      fs::create_symlink(contents.substr(2), root + path);
    } else {
      write_text_to(root + path, contents);
    }
  }
}

TEST_P(SaveUnderFire, LosingPowerAtAnyCallLeavesTheOldStateOrTheNew) {
  const std::vector<Survives> choices = {
      [](size_t, size_t) { return false; },
      [](size_t, size_t) { return true; },
      [](size_t i, size_t) { return i == 0; },
      [](size_t i, size_t) { return i != 0; },
      [](size_t i, size_t n) { return i + 1 == n; },
      [](size_t i, size_t n) { return i + 1 != n; },
      [](size_t i, size_t) { return i % 2 == 0; },
  };
  const TemporaryFolder after;
  Disk disk(folder_.path());
  std::set<Image> seen;
  const auto images = [&] {
    std::vector<Image> fresh;
    for (const Survives& survives : choices) {
      for (const Bytes bytes : {Bytes::safe, Bytes::all, Bytes::none}) {
        Image image;
        add_survivors(disk.node(), "", bytes, survives, image);
        if (seen.insert(image).second) fresh.push_back(std::move(image));
      }
    }
    return fresh;
  };
  disk.visit = [&] {
    for (const Image& image : images()) {
      write_image(image, after.path());
      const Search search = find_newest(after.path());
      ASSERT_TRUE(search.newest);
      ASSERT_TRUE(is_old(search) || is_new(search)) << "step " << search.newest->step;
    }
  };
  save(disk);
  EXPECT_GT(seen.size(), 40u);

  // Once it is said to be committed, a loss of power takes nothing away.
  seen.clear();
  for (const Image& image : images()) {
    write_image(image, after.path());
    EXPECT_TRUE(is_new(find_newest(after.path())));
  }
}

}  // namespace
}  // namespace lockstep
