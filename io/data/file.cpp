#include "io/data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

constexpr size_t piece = size_t{1} << 20;
constexpr uint64_t hashed_whole = uint64_t{64} << 20;
constexpr uint64_t samples = 64;
constexpr size_t sample = size_t{64} << 10;

struct FreeHash {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

uint64_t content_hash(const File& file) {
  const std::unique_ptr<XXH3_state_t, FreeHash> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> buffer(std::min<uint64_t>(piece, file.size()));
  const auto take = [&](uint64_t offset, uint64_t count) {
    const std::span<std::byte> part = std::span(buffer).first(std::min<uint64_t>({count, buffer.size(), file.size() - offset}));
    file.read_at(offset, part);
    XXH3_64bits_update(state.get(), part.data(), part.size());
  };
  if (file.size() < hashed_whole) {
    for (uint64_t offset = 0; offset < file.size(); offset += piece) take(offset, piece);
  } else {
    take(0, piece);
    for (uint64_t i = 1; i <= samples; ++i) take(file.size() / (samples + 1) * i, sample);
    take(file.size() - piece, piece);
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

File::File(std::string path) : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw Error("D01", path_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat facts {};
  const bool known = fstat(descriptor_, &facts) == 0;
  const bool folder = known && S_ISDIR(facts.st_mode);
  if (!known || folder || facts.st_size == 0) {
    close(descriptor_);
    throw Error("D01", path_, folder ? "is a directory; expected a file" : "is empty");
  }
  size_ = static_cast<uint64_t>(facts.st_size);
}

File::~File() { close(descriptor_); }

void File::read_at(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("D01", path_, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (count == 0) {
      check_unchanged();
      throw Error("D01", path_, fmt::format("byte {} was asked for, the file has {}", offset, size_));
    }
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
}

std::vector<std::byte> File::head(size_t count) const {
  std::vector<std::byte> bytes(std::min<uint64_t>(count, size_));
  read_at(0, bytes);
  return bytes;
}

void File::check_unchanged() const {
  struct stat facts {};
  if (fstat(descriptor_, &facts) == 0 && static_cast<uint64_t>(facts.st_size) != size_) {
    throw Error("D13", path_, fmt::format("changed since the job started (size {} -> {}); data must stay as it is while a job runs", size_, facts.st_size));
  }
}

std::string fingerprint_of(std::span<const std::shared_ptr<const File>> files) {
  std::string all;
  uint64_t bytes = 0;
  for (const auto& file : files) {
    file->check_unchanged();
    bytes += file->size();
    all += fmt::format("{}:{:016x} ", file->size(), content_hash(*file));
  }
  return fmt::format("{} files, {} bytes, {:016x}", files.size(), bytes, XXH3_64bits(all.data(), all.size()));
}

}  // namespace lockstep
