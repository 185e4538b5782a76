#pragma once

#include <cstdint>

#include "core/graph/op.h"

namespace lockstep {

#if defined(__CUDACC__)
namespace detail {

template <class Function>
__global__ void run_functor(int64_t count, Function function) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) function(i);
}

}  // namespace detail
#endif

namespace detail {

// One loop a processor generation, chosen when the program is loaded.
template <class Function>
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void run_loop(int64_t count, Function function) {
  for (int64_t i = 0; i < count; ++i) function(i);
}

}  // namespace detail

/// Calls function(i) for i in [0, count), in any order: a loop on the processor, a grid on the device. The functor is
/// `[=] LOCKSTEP_HD (int64_t i) {...}` over raw pointers; each call writes only what belongs to i.
template <class Function>
void launch(const KernelArguments& arguments, int64_t count, Function function) {
  if (count <= 0) return;
#if defined(__CUDACC__)
  if (arguments.stream) {
    constexpr int threads = 256;
    const int64_t blocks = (count + threads - 1) / threads;
    detail::run_functor<<<static_cast<unsigned>(blocks < 65535 ? blocks : 65535), threads, 0, static_cast<cudaStream_t>(arguments.stream)>>>(count, function);
    return;
  }
#endif
  (void)arguments;
  detail::run_loop(count, function);
}

}  // namespace lockstep
