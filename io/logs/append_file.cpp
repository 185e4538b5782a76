#include "io/logs/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "core/error/error.h"
#include "io/checkpoint/file_operations.h"

namespace lockstep {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error("W30", path_, std::string("the log cannot be opened: ") + std::strerror(errno));
}

AppendFile::~AppendFile() {
  write_waiting();
  close(file_);
}

int64_t AppendFile::size() const {
  struct stat status;
  return (fstat(file_, &status) == 0 ? status.st_size : 0) + static_cast<int64_t>(waiting_.size());
}

void AppendFile::append(std::string_view bytes) {
  waiting_ += bytes;
  write_waiting();
}

void AppendFile::write_waiting() {
  if (waiting_.empty()) return;
  const FileSizeSignalHeld held;
  size_t written = 0;
  reason_ = 0;
  while (written < waiting_.size()) {
    const ssize_t count = write(file_, waiting_.data() + written, waiting_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      reason_ = count < 0 ? errno : ENOSPC;
      break;
    }
    written += static_cast<size_t>(count);
  }
  waiting_.erase(0, written);
}

void AppendFile::sync() {
  write_waiting();
  if (reason_ == 0 && fsync(file_) != 0 && errno != EINVAL) reason_ = errno;
}

std::optional<std::string> AppendFile::failure() const {
  if (reason_ == 0) return std::nullopt;
  return path_ + ": " + std::strerror(reason_);
}

std::string file_contents(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 && errno == ENOENT) return {};
  std::ifstream file(path, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad()) throw Error("W30", path, "the log cannot be read");
  return contents;
}

int64_t keep_lines(const std::string& path, const std::function<bool(std::string_view line)>& keep) {
  const std::string before = file_contents(path);
  std::string after;
  int64_t removed = 0;
  size_t start = 0;
  for (size_t end = before.find('\n'); end != std::string::npos; start = end + 1, end = before.find('\n', start)) {
    if (keep(std::string_view(before).substr(start, end - start))) {
      after.append(before, start, end + 1 - start);
    } else {
      ++removed;
    }
  }
  if (after.size() != before.size()) replace_file(FileOperations::posix(), path, std::as_bytes(std::span(after)));
  return removed;
}

}  // namespace lockstep
