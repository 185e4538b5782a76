#include "io/model_file/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

InputFile::InputFile(std::string path, std::string code) : path_(std::move(path)), code_(std::move(code)) {
  // Not blocking: opening a pipe without a writer would wait for ever.
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw Error(code_, path_, errno == ENOENT ? "the file is missing" : fmt::format("cannot read the file: {}", std::strerror(errno)));
  struct stat status {};
  if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file_);
    throw Error(code_, path_, "is not a regular file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), code_(std::move(other.code_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(file_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(code_, path_, fmt::format("cannot read {} bytes at {}: {}", into.size(), offset, std::strerror(errno)));
    if (count == 0) throw Error(code_, path_, fmt::format("ends at {} bytes where bytes {} to {} were to be read; truncated?", offset + done, offset, offset + into.size()));
    done += static_cast<size_t>(count);
  }
}

std::string InputFile::read_all(uint64_t limit) const {
  if (size_ > limit) throw Error(code_, path_, fmt::format("is {}; the limit is {}", text_of_bytes(size_), text_of_bytes(limit)));
  std::string text(size_, '\0');
  read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string text_of_bytes(uint64_t bytes) {
  if (bytes < 10240) return fmt::format("{} bytes", bytes);
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace lockstep
