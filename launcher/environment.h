#pragma once

#include <string>
#include <vector>

#include "core/communicator/communicator.h"
#include "core/value/value.h"

namespace lockstep {

/// What the bits of a run depend on: the processor's model and oneDNN's version.
Value processor_facts();

/// env.json: program, ranks, hosts, processor, libraries. No secrets: nothing of the environment's variables but the scheduler's job id.
Value environment(const Communicator& communicator);

/// The device that a rank computes on: "cpu:K" for the K-th rank of its host. `shared` pretends that it is the one before (a fault).
std::string device_of(const Communicator& communicator, bool shared = false);

/// Throws L05 for `cuda` where the build or the machine has none.
void check_device(const std::string& device);

/// Compares processors and libraries over ranks: L11 naming the odd one, since bits would differ.
void check_same_processors(Communicator& communicator);

}  // namespace lockstep
