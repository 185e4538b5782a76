#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/communicator/replicas.h"
#include "core/error/error.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Sums what every replica contributed, slice by slice, in one fixed binary tree over replicas, so that the bits do not depend on how many ranks host
/// them. One step: begin() -> backward writes contribution(i) -> reduce_scatter -> the owner of each slice updates -> all_gather.
/// No call allocates memory.
class Reducer {
 public:
  virtual ~Reducer() = default;

  /// Where local replica i (0 for the first that this rank hosts) leaves what is to be summed: `elements` values, read by other ranks in place. The same
  /// place for ever, 64-byte aligned, zero at first; no call changes it.
  virtual std::span<std::byte> contribution(int local_replica) = 0;
  /// The elements that `rank` owns. Slices tile [0, elements) in rank order; inner ends are multiples of slice_block. The last ones may be empty.
  virtual Range slice(int rank) const = 0;
  /// Waits until no rank reads this rank's contributions of the step before. Call before the first write of a step.
  virtual void begin() = 0;
  /// Gives the sums of this rank's slice, in runs of slice_block elements (the last may be shorter), in order: take(first element, values).
  using Take = std::function<void(int64_t first, std::span<const std::byte> sums)>;
  virtual void reduce_scatter(const Take& take) = 0;
  /// `full` holds this rank's slice in place; afterwards it holds every rank's.
  virtual void all_gather(std::span<std::byte> full) = 0;
  /// An array of this rank's own, `elements` values, 64-byte aligned, zero at first, the same for ever: all_gather into it copies least, as the others
  /// read this rank's slice in place. Where weights that are updated slice by slice should live. Write to it only between begin() and all_gather().
  virtual std::span<std::byte> full() = 0;
};

/// Elements between two possible ends of a slice; also the block of the fixed order in which norms are summed.
constexpr int64_t slice_block = 4096;

/// A small sum over replicas whose result every rank needs at once: losses, counts, statistics of a synchronized layer, the control word.
class ReplicaSum {
 public:
  virtual ~ReplicaSum() = default;
  /// Where local replica i leaves its values before run(). The same place for ever; run() leaves it as it is.
  virtual std::span<std::byte> contribution(int local_replica) = 0;
  /// The sums in tree order, the same bytes on every rank; valid until the next run().
  virtual std::span<const std::byte> run() = 0;
};

/// The ranks of a job, seen from one of them. Every rank makes the same calls in the same order. Every wait has a limit: when it passes, or when
/// another rank has failed, the call throws Error (family P, or the other rank's own problem) naming the operation and the missing ranks.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Name of the host of each rank.
  virtual const std::vector<std::string>& hosts() const = 0;

  virtual void barrier(std::string_view operation) = 0;
  /// As many bytes on every rank.
  virtual void broadcast(std::span<std::byte> bytes, int root, std::string_view operation) = 0;
  /// Every rank's text, in rank order. Lengths may differ. For set-up, not for steps.
  virtual std::vector<std::string> all_gather(std::string_view text, std::string_view operation) = 0;
  /// The texts of all ranks on rank 0; elsewhere empty. For large pieces (slots of an optimizer).
  virtual std::vector<std::string> gather(std::string_view text, std::string_view operation) = 0;

  /// Both add float32, float64, int64 and uint64; X01 for others. `replicas.ranks` is size().
  virtual std::unique_ptr<Reducer> make_reducer(DType dtype, int64_t elements, const Replicas& replicas) = 0;
  virtual std::unique_ptr<ReplicaSum> make_replica_sum(DType dtype, int64_t elements, const Replicas& replicas) = 0;

  /// Tells the others that this rank failed: their waits end with the same problems. Never throws, never waits.
  virtual void report_failure(const Error& error) noexcept = 0;
  /// Throws when another rank has failed; for a rank that computes for long without a wait.
  virtual void check() = 0;
  /// Seconds that a wait may last; 60 at first.
  virtual void set_limit(double seconds) = 0;
  /// The step that messages name from now on; 0, as at first, names none.
  virtual void set_step(int64_t step) = 0;
};

/// Runs `step` on rank 0 and gives its bytes to all. A failure of rank 0 is everyone's: every rank throws the same Error.
std::string on_root(Communicator& communicator, std::string_view operation, const std::function<std::string()>& step);

/// Every rank runs `step`; if it fails on any, every rank throws the problems of the lowest that failed, so that all leave together.
void together(Communicator& communicator, std::string_view operation, const std::function<void()>& step);

/// Runs `rank_main` on `size` threads, each a rank. Returns when all have ended; rethrows the failure that came first.
/// `nodes` > 1 divides the ranks into as many pretended hosts, between which no memory is shared.
void run_ranks_as_threads(int size, const std::function<void(Communicator&)>& rank_main, int nodes = 1);

/// A communicator of one rank.
std::unique_ptr<Communicator> make_single_communicator();

/// True when a launcher (mpirun, srun) started this process as one of several or as the only one of a job: its environment says so.
bool started_by_launcher();

/// MPI_Init to MPI_Finalize. Only under a launcher, once a process. The process is killed when its launcher dies. Throws L43 when MPI can't start.
/// A rank whose peers may be dead leaves by _exit instead of through the destructor: MPI_Finalize waits for all.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int size() const;
  /// The world. `nodes` > 1 as above: for tests of what crosses hosts.
  std::unique_ptr<Communicator> make_communicator(int nodes = 1);
};

}  // namespace lockstep
