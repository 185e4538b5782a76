#pragma once

#include <cstring>
#include <memory>
#include <type_traits>

#include "core/ops/launch.h"

#if defined(__CUDACC__)
#include <cuda_runtime_api.h>
#endif

/// What the reference kernels of ops share.
namespace lockstep::ops {

/// The type in which values of type T are computed: integers in their own, the half types in f32.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, ComputeType<T>>;

template <class T>
const T* input_of(const KernelArguments& arguments, int i) {
  return static_cast<const T*>(arguments.inputs[i]);
}
template <class T>
T* output_of(const KernelArguments& arguments, int i = 0) {
  return static_cast<T*>(arguments.outputs[i]);
}

/// A kernel that calls `run(Tag<T>{}, arguments)` with the type of a floating dtype.
template <class Run>
std::unique_ptr<Kernel> floating_kernel(DType dtype, Run run) {
  std::unique_ptr<Kernel> result;
  visit_floating(dtype, [&]<class T>(Tag<T> tag) { result = make_kernel([run, tag](const KernelArguments& arguments) { run(tag, arguments); }); });
  return result;
}

/// As floating_kernel, for int32 and int64 too.
template <class Run>
std::unique_ptr<Kernel> numeric_kernel(DType dtype, Run run) {
  if (dtype == DType::i32) return make_kernel([run](const KernelArguments& arguments) { run(Tag<int32_t>{}, arguments); });
  if (dtype == DType::i64) return make_kernel([run](const KernelArguments& arguments) { run(Tag<int64_t>{}, arguments); });
  return floating_kernel(dtype, run);
}

/// As floating_kernel, for every dtype.
template <class Run>
std::unique_ptr<Kernel> any_kernel(DType dtype, Run run) {
  std::unique_ptr<Kernel> result;
  visit_any(dtype, [&]<class T>(Tag<T> tag) { result = make_kernel([run, tag](const KernelArguments& arguments) { run(tag, arguments); }); });
  return result;
}

/// As floating_kernel, for kernels that only move elements: an unsigned type of the element's size stands for it.
template <class Run>
std::unique_ptr<Kernel> moving_kernel(DType dtype, Run run) {
  switch (size_of(dtype)) {
    case 1:
      return make_kernel([run](const KernelArguments& arguments) { run(Tag<uint8_t>{}, arguments); });
    case 2:
      return make_kernel([run](const KernelArguments& arguments) { run(Tag<uint16_t>{}, arguments); });
    case 4:
      return make_kernel([run](const KernelArguments& arguments) { run(Tag<uint32_t>{}, arguments); });
    default:
      return make_kernel([run](const KernelArguments& arguments) { run(Tag<uint64_t>{}, arguments); });
  }
}

/// How many elements in a row one call of a functor takes: the whole row on the processor, where the inner loop is a vector loop; one on the device,
/// where neighbours are threads.
inline int64_t chunk_of(const KernelArguments& arguments, int64_t row, int64_t on_processor) {
  const int64_t chunk = arguments.stream ? 1 : on_processor;
  return chunk < row ? chunk : (row > 0 ? row : 1);
}

inline void copy_bytes(const KernelArguments& arguments, const void* from, void* to, size_t bytes) {
  if (from == to || bytes == 0) return;
#if defined(__CUDACC__)
  if (arguments.stream) {
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(arguments.stream));
    return;
  }
#endif
  (void)arguments;
  std::memcpy(to, from, bytes);
}

inline void fill_zero(const KernelArguments& arguments, void* to, size_t bytes) {
  if (bytes == 0) return;
#if defined(__CUDACC__)
  if (arguments.stream) {
    cudaMemsetAsync(to, 0, bytes, static_cast<cudaStream_t>(arguments.stream));
    return;
  }
#endif
  (void)arguments;
  std::memset(to, 0, bytes);
}

}  // namespace lockstep::ops
