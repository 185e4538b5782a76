#include "core/communicator/mpi_links.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/communicator/mapped_segment.h"
#include "core/error/error.h"

namespace lockstep {

namespace {

constexpr int data_tag = 1;
constexpr int failure_tag = 2;
/// Bytes of one MPI message; its count is an int.
constexpr size_t message_bytes = size_t{1} << 30;

[[noreturn]] void throw_no_memory(size_t bytes, const std::string& what) {
  throw Error("L42", "", fmt::format("no {} MiB of memory to share within the node: {}: {}", (bytes >> 20) + 1, what, std::strerror(errno)));
}

/// A file descriptor until the end of a scope.
struct OpenFile {
  explicit OpenFile(int file) : file(file) {}
  ~OpenFile() {
    if (file >= 0) close(file);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int release() { return std::exchange(file, -1); }

  int file;
};

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(code, text, &size);
  throw Error("P02", "", fmt::format("{}: {}; a rank may be gone: start the job again", call, std::string(text, static_cast<size_t>(size))));
}

MpiLinks::~MpiLinks() { abandon(); }

std::shared_ptr<Segment> MpiLinks::create_segment(size_t bytes, SegmentKey& key) {
  OpenFile memory(memfd_create("lockstep", MFD_CLOEXEC));
  if (memory.file < 0) throw_no_memory(bytes, "memfd_create");
  if (ftruncate(memory.file, static_cast<off_t>(std::max<size_t>(bytes, 1))) != 0) throw_no_memory(bytes, "ftruncate");
  auto segment = std::make_shared<MappedSegment>(memory.file, bytes);
  key = {getpid(), memory.release()};
  return segment;
}

std::shared_ptr<Segment> MpiLinks::open_segment(size_t bytes, const SegmentKey& key) {
  const std::string path = fmt::format("/proc/{}/fd/{}", key.owner, key.number);
  const OpenFile memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.file < 0) throw_no_memory(bytes, path);
  return std::make_shared<MappedSegment>(memory.file, bytes);
}

void MpiLinks::close_segment(const SegmentKey& key) noexcept { close(static_cast<int>(key.number)); }

void MpiLinks::send(int rank, std::span<const std::byte> bytes) {
  for (size_t begin = 0; begin < bytes.size(); begin += message_bytes) {
    const int count = static_cast<int>(std::min(message_bytes, bytes.size() - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(bytes.data() + begin, count, MPI_BYTE, rank, data_tag, MPI_COMM_WORLD, &request), "MPI_Isend");
    requests_.push_back(request);
    others_.push_back(rank);
    incoming_.push_back(false);
  }
}

void MpiLinks::receive(int rank, std::span<std::byte> bytes) {
  for (size_t begin = 0; begin < bytes.size(); begin += message_bytes) {
    const int count = static_cast<int>(std::min(message_bytes, bytes.size() - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(bytes.data() + begin, count, MPI_BYTE, rank, data_tag, MPI_COMM_WORLD, &request), "MPI_Irecv");
    requests_.push_back(request);
    others_.push_back(rank);
    incoming_.push_back(true);
  }
}

bool MpiLinks::done() {
  if (requests_.empty()) return true;
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
  if (all == 0) return false;
  requests_.clear();
  others_.clear();
  incoming_.clear();
  return true;
}

std::vector<int> MpiLinks::unfinished() const {
  std::vector<int> ranks;
  for (size_t i = 0; i < requests_.size(); ++i) {
    int complete = 0;
    MPI_Request_get_status(requests_[i], &complete, MPI_STATUS_IGNORE);
    if (complete == 0) ranks.push_back(others_[i]);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void MpiLinks::abandon() noexcept {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (incoming_[i]) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  requests_.clear();
  others_.clear();
  incoming_.clear();
}

void MpiLinks::send_failure(int rank, std::span<const std::byte> problems) noexcept {
  try {
    const std::string& kept = failures_.emplace_back(reinterpret_cast<const char*>(problems.data()), problems.size());
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(kept.data(), static_cast<int>(kept.size()), MPI_BYTE, rank, failure_tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS) MPI_Request_free(&request);
  } catch (const std::bad_alloc&) {
    // The other's wait ends by its limit.
  }
}

std::optional<std::string> MpiLinks::take_failure() {
  int there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, failure_tag, MPI_COMM_WORLD, &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  int size = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  std::string problems(static_cast<size_t>(std::max(size, 0)), '\0');
  // It is there already: this doesn't wait.
  check_mpi(MPI_Recv(problems.data(), size, MPI_BYTE, status.MPI_SOURCE, failure_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
  return problems;
}

}  // namespace lockstep
