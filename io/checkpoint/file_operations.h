#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

/// The system calls that change a checkpoint folder, as one interface, so that tests can make any of them fail. As in POSIX: -1 and errno on failure.
class FileOperations {
 public:
  virtual ~FileOperations() = default;

  virtual int open(const std::string& path, int flags, mode_t mode);
  virtual ssize_t write(int file, const void* bytes, size_t count);
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int mkdir(const std::string& path, mode_t mode);
  virtual int rename(const std::string& from, const std::string& to);
  /// Swaps two names in one step. EINVAL or ENOSYS where the file system can't.
  virtual int exchange(const std::string& a, const std::string& b);
  virtual int symlink(const std::string& target, const std::string& path);
  virtual int unlink(const std::string& path);
  virtual int rmdir(const std::string& path);

  /// The system's own.
  static FileOperations& posix();
};

// Each throws Error W10 with the path as place and the system's reason; interrupted calls and short writes are gone on with.

/// A new file with these bytes, on the disk when this returns (its name is so only after `sync_folder`).
void write_durably(FileOperations& files, const std::string& path, std::span<const std::byte> bytes);
/// Makes the names in a folder durable.
void sync_folder(FileOperations& files, const std::string& folder);
/// Puts bytes in the place of a file in one step: after a crash it has the old ones or the new.
void replace_file(FileOperations& files, const std::string& path, std::span<const std::byte> bytes);
/// A file, or a folder with all that it holds. What isn't there is fine; links are removed, not followed.
void remove_all(FileOperations& files, const std::string& path);
[[noreturn]] void fail_to(const std::string& what, const std::string& path, int reason);

/// While it lives, a write past RLIMIT_FSIZE on this thread fails with EFBIG, and no SIGXFSZ ends the process.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld();
  ~FileSizeSignalHeld();
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep
