#include "io/checkpoint/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/fields.h"
#include "io/checkpoint/process.h"
#include "io/json/json.h"

namespace lockstep {

namespace {

struct Holder {
  std::string host;
  int64_t process = 0;
  int64_t start = 0;
  std::string since;
  std::string job;

  void fields(Fields& fields) {
    fields.add("host", host, "machine of the holder").require();
    fields.add("process", process, "its process id").require();
    fields.add("start", start, "start of the process in ticks since the machine's").require();
    fields.add("since", since, "when it took the lock").require();
    fields.add("job", job, "its id with the scheduler").require();
  }
};

Holder myself(const std::string& job) {
  return {host_name(), getpid(), start_ticks(getpid()), fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr))), job};
}

/// Nothing when the file is empty or was cut short: its writer died in the middle, or is about to write.
std::optional<Holder> holder_in(int file, const std::string& path) {
  std::array<char, 4096> text;
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  try {
    return read_described<Holder>(read_json_text(path, std::string_view(text.data(), static_cast<size_t>(size)), "L21"), "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool same_file(int file, const std::string& path) {
  struct stat open_one;
  struct stat named;
  return fstat(file, &open_one) == 0 && stat(path.c_str(), &named) == 0 && open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

enum class FileLock { ours,
                      theirs,
                      unsupported };

FileLock try_lock(int file) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return FileLock::ours;
  return errno == EWOULDBLOCK || errno == EINTR ? FileLock::theirs : FileLock::unsupported;
}

/// Writes our name into the lock. False when another one wrote at the same time, which a file lock rules out. Closes the file when it throws.
bool take(int file, const std::string& path, const Holder& us, FileLock lock) {
  const std::string text = write_json(FieldType<Holder>::write(us)) + "\n";
  if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int reason = errno;
    close(file);
    throw Error("L21", path, std::string("the lock of the run folder cannot be written: ") + std::strerror(reason));
  }
  if (lock == FileLock::ours) return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::optional<Holder> written = holder_in(file, path);
  return written && written->host == us.host && written->process == us.process && same_file(file, path);
}

bool is_gone(const Holder& holder, FileLock lock, const std::string& job) {
  if (holder.host != host_name()) return !job.empty() && holder.job == job;
  if (lock == FileLock::ours) return true;
  const auto process = static_cast<pid_t>(holder.process);
  return !process_exists(process) || start_ticks(process) != holder.start;
}

}  // namespace

RunLock::RunLock(const std::string& folder, const std::string& job, double limit_seconds) : path_(folder + "/lock") {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::optional<Holder> holder;
  while (true) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) throw Error("L21", path_, std::string("the lock of the run folder cannot be made: ") + std::strerror(errno));
    const FileLock lock = try_lock(file);
    holder = holder_in(file, path_);
    // A holder that has just left took the file with it: then this one is nobody's.
    if (lock != FileLock::theirs && same_file(file, path_) && (!holder || is_gone(*holder, lock, job)) && take(file, path_, myself(job), lock)) {
      file_ = file;
      return;
    }
    close(file);
    if (std::chrono::duration<double>(Clock::now() - start).count() >= limit_seconds) {
      const std::string who = holder ? fmt::format("process {} on {}{}, since {}", holder->process, printable(holder->host), holder->job.empty() ? "" : " (job " + printable(holder->job) + ")", printable(holder->since)) : "a process that has not said its name";
      throw Error("L20", folder, fmt::format("in use by {}; waited {:g} s; let it end or stop it, or choose another run_folder; if it is gone, remove {}", who, limit_seconds, path_));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

RunLock::~RunLock() {
  // Removed while still held, so that the next one never finds a file that is about to go.
  if (same_file(file_, path_)) unlink(path_.c_str());
  close(file_);
}

}  // namespace lockstep
