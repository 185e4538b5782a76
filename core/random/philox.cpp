#include "core/random/philox.h"

#include <xxhash.h>

namespace lockstep {

uint64_t stream_of(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

}  // namespace lockstep
