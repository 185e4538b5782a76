#pragma once

#include "core/communicator/links.h"

namespace lockstep {

/// Memory from mmap: of a file that others map too, or of this process alone. Pages are zero until touched, and lie where who touches them first runs.
class MappedSegment final : public Segment {
 public:
  /// `file` is an open descriptor of at least `size` bytes, which the caller goes on owning; -1: this process alone. Throws L42.
  MappedSegment(int file, size_t size);
  ~MappedSegment() override;
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;
};

}  // namespace lockstep
