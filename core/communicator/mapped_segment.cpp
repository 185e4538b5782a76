#include "core/communicator/mapped_segment.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/error/error.h"

namespace lockstep {

MappedSegment::MappedSegment(int file, size_t size) {
  const size_t mapped = std::max<size_t>(size, 1);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    throw Error("L42", "", fmt::format("no {} MiB of memory to share within the node: {}; fewer replicas a node need less", (mapped >> 20) + 1, std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(memory), mapped};
}

MappedSegment::~MappedSegment() { munmap(bytes_.data(), bytes_.size()); }

}  // namespace lockstep
