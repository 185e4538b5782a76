#pragma once

#include <memory>
#include <string_view>

#include "core/communicator/communicator.h"

namespace lockstep {

/// How GPUs add gradients; `reduction` in a job.
enum class Reduction {
  exact,  ///< the fixed tree: the same bits for any number of ranks
  fast,   ///< the library's order: bits may vary with the ranks
};

/// The GPUs of the ranks, a device a rank. Every rank makes the same calls in the same order.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  /// A Reducer over device memory: its calls only put work on `stream` (a cudaStream_t of the rank's device), so a CUDA graph can hold them, and wait for
  /// nothing. It differs from one over host memory in this: contributions, sums and `full` are device memory; slices are equal but for the last ones;
  /// take is called once, for the whole slice, and puts its own work on the stream.
  virtual std::unique_ptr<Reducer> make_reducer(DType dtype, int64_t elements, const Replicas& replicas, Reduction reduction, void* stream) = 0;
  /// Until the work on the stream is done. Throws P03 when the limit passes or the library reports an error, and the other's problems when a rank failed.
  virtual void wait(void* stream, std::string_view operation) = 0;
  /// Ends what is under way; nothing works afterwards. Never waits for other ranks.
  virtual void abort() noexcept = 0;
};

/// Joins the devices of all ranks; a wait lasts at most `limit_seconds`. `communicator` must outlive the result. Throws L40 when the build has no NCCL,
/// L41 when the devices can't be joined.
std::unique_ptr<DeviceCommunicator> join_devices(Communicator& communicator, int device, double limit_seconds);

}  // namespace lockstep
