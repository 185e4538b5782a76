#include "io/checkpoint/file_operations.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/error/error.h"

namespace lockstep {

int FileOperations::open(const std::string& path, int flags, mode_t mode) { return ::open(path.c_str(), flags, mode); }
ssize_t FileOperations::write(int file, const void* bytes, size_t count) { return ::write(file, bytes, count); }
int FileOperations::fsync(int file) { return ::fsync(file); }
int FileOperations::close(int file) { return ::close(file); }
int FileOperations::mkdir(const std::string& path, mode_t mode) { return ::mkdir(path.c_str(), mode); }
int FileOperations::rename(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()); }
int FileOperations::exchange(const std::string& a, const std::string& b) { return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); }
int FileOperations::symlink(const std::string& target, const std::string& path) { return ::symlink(target.c_str(), path.c_str()); }
int FileOperations::unlink(const std::string& path) { return ::unlink(path.c_str()); }
int FileOperations::rmdir(const std::string& path) { return ::rmdir(path.c_str()); }

FileOperations& FileOperations::posix() {
  static FileOperations operations;
  return operations;
}

void fail_to(const std::string& what, const std::string& path, int reason) { throw Error("W10", path, "cannot " + what + ": " + std::strerror(reason)); }

namespace {

/// Closes on the way out of a failure; `close` tells of its own.
class OpenFile {
 public:
  OpenFile(FileOperations& files, const std::string& path, int flags, const std::string& what) : files_(files), path_(path) {
    do {
      file_ = files.open(path, flags | O_CLOEXEC, 0644);
    } while (file_ < 0 && errno == EINTR);
    if (file_ < 0) fail_to(what, path, errno);
  }
  ~OpenFile() {
    if (file_ >= 0) files_.close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    // Linux takes at most 2 GiB a call.
    constexpr size_t piece = size_t{1} << 30;
    while (!bytes.empty()) {
      const ssize_t written = files_.write(file_, bytes.data(), std::min(bytes.size(), piece));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_to("write", path_, errno);
      if (written == 0) fail_to("write", path_, ENOSPC);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
  void sync() {
    int result;
    do {
      result = files_.fsync(file_);
    } while (result < 0 && errno == EINTR);
    if (result < 0) fail_to("make durable (fsync)", path_, errno);
  }
  void close() {
    const int file = file_;
    file_ = -1;
    // Linux has closed the file even where it says EINTR; a second close might hit another thread's.
    if (files_.close(file) < 0 && errno != EINTR) fail_to("close", path_, errno);
  }

 private:
  FileOperations& files_;
  const std::string& path_;
  int file_ = -1;
};

}  // namespace

void write_durably(FileOperations& files, const std::string& path, std::span<const std::byte> bytes) {
  OpenFile file(files, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create");
  file.write(bytes);
  file.sync();
  file.close();
}

void sync_folder(FileOperations& files, const std::string& folder) {
  OpenFile file(files, folder, O_RDONLY | O_DIRECTORY, "open the folder");
  file.sync();
  file.close();
}

void replace_file(FileOperations& files, const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".part" + std::to_string(getpid());
  remove_all(files, temporary);
  try {
    write_durably(files, temporary, bytes);
    if (files.rename(temporary, path) < 0) fail_to("rename the finished file to its name", path, errno);
  } catch (const Error&) {
    files.unlink(temporary);
    throw;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  sync_folder(files, folder.empty() ? "." : folder);
}

void remove_all(FileOperations& files, const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) < 0) {
    if (errno == ENOENT) return;
    fail_to("look at", path, errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    if (files.unlink(path) < 0 && errno != ENOENT) fail_to("remove", path, errno);
    return;
  }
  std::vector<std::string> names;
  {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (!folder) fail_to("list", path, errno);
    while (const dirent* entry = readdir(folder.get())) names.emplace_back(entry->d_name);
  }
  for (const std::string& name : names) {
    if (name != "." && name != "..") remove_all(files, path + "/" + name);
  }
  if (files.rmdir(path) < 0 && errno != ENOENT) fail_to("remove the folder", path, errno);
}

FileSizeSignalHeld::FileSizeSignalHeld() {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

FileSizeSignalHeld::~FileSizeSignalHeld() {
  // One that came in the meantime would be delivered when let through.
  if (!sigismember(&before_, SIGXFSZ)) {
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGXFSZ);
    const timespec at_once{};
    while (sigtimedwait(&held, nullptr, &at_once) > 0) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
