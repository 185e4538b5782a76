#include "core/communicator/nccl.h"

namespace lockstep {

std::unique_ptr<DeviceCommunicator> join_devices(Communicator&, int, double) {
  throw Error("L40", "", "this build has no NCCL, which joins GPUs; build with 'cmake --preset cuda', or set device: cpu");
}

}  // namespace lockstep
