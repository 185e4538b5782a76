#pragma once

#include <deque>
#include <string>
#include <vector>

#include <mpi.h>

#include "core/communicator/links.h"

namespace lockstep {

/// Throws P02 with MPI's own words unless `code` is success.
void check_mpi(int code, const char* call);

/// Links between the processes of MPI_COMM_WORLD. No call blocks: messages are started and looked at.
class MpiLinks final : public Links {
 public:
  MpiLinks() = default;
  ~MpiLinks() override;
  MpiLinks(const MpiLinks&) = delete;
  MpiLinks& operator=(const MpiLinks&) = delete;

  /// Memory without a name in any file system: nothing to leave behind, and no limit of /dev/shm. Others open it through /proc.
  std::shared_ptr<Segment> create_segment(size_t bytes, SegmentKey& key) override;
  std::shared_ptr<Segment> open_segment(size_t bytes, const SegmentKey& key) override;
  void close_segment(const SegmentKey& key) noexcept override;

  void send(int rank, std::span<const std::byte> bytes) override;
  void receive(int rank, std::span<std::byte> bytes) override;
  bool done() override;
  std::vector<int> unfinished() const override;
  void abandon() noexcept override;

  void send_failure(int rank, std::span<const std::byte> problems) noexcept override;
  std::optional<std::string> take_failure() override;

 private:
  std::vector<MPI_Request> requests_;
  std::vector<int> others_;    // the rank at the other end of each request
  std::vector<bool> incoming_;  // of each request
  std::deque<std::string> failures_;  // that may still be under way
};

}  // namespace lockstep
