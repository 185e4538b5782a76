#pragma once

#include <memory>

#include "core/communicator/communicator.h"
#include "core/communicator/group.h"

namespace lockstep {

/// A Communicator over a group: threads and processes differ in its links alone.
class GroupCommunicator final : public Communicator {
 public:
  explicit GroupCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return placement().rank; }
  int size() const override { return placement().size(); }
  const std::vector<std::string>& hosts() const override { return placement().hosts; }

  void barrier(std::string_view operation) override { group_->meet(operation); }
  void broadcast(std::span<std::byte> bytes, int root, std::string_view operation) override;
  std::vector<std::string> all_gather(std::string_view text, std::string_view operation) override;
  std::vector<std::string> gather(std::string_view text, std::string_view operation) override;

  std::unique_ptr<Reducer> make_reducer(DType dtype, int64_t elements, const Replicas& replicas) override;
  std::unique_ptr<ReplicaSum> make_replica_sum(DType dtype, int64_t elements, const Replicas& replicas) override;

  void report_failure(const Error& error) noexcept override { group_->fail(error.problems()); }
  void check() override { group_->check(); }
  void set_limit(double seconds) override { group_->set_limit(seconds); }
  void set_step(int64_t step) override { group_->set_step(step); }

 private:
  const Placement& placement() const { return group_->placement(); }

  std::shared_ptr<Group> group_;
};

}  // namespace lockstep
