#include "core/onednn/onednn.h"

#include <algorithm>

#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/onednn/kernels.h"

namespace lockstep {

std::unique_ptr<Kernel> onednn_kernel(const Op& op, const NodeTypes& types) {
  const auto is_f32 = [](const TensorType& type) { return type.dtype == DType::f32; };
  if (!std::ranges::all_of(types.inputs, is_f32) || !std::ranges::all_of(types.outputs, is_f32)) return nullptr;
  if (const auto* dense = dynamic_cast<const ops::DenseOp*>(&op)) return onednn::kernel_of(*dense, types);
  if (const auto* matmul = dynamic_cast<const ops::MatmulOp*>(&op)) return onednn::kernel_of(*matmul, types);
  if (const auto* convolution = dynamic_cast<const ops::Conv2dOp*>(&op)) return onednn::kernel_of(*convolution, types);
  if (const auto* gradient = dynamic_cast<const ops::Conv2dInputGradientOp*>(&op)) return onednn::kernel_of(*gradient, types);
  if (const auto* gradient = dynamic_cast<const ops::Conv2dKernelGradientOp*>(&op)) return onednn::kernel_of(*gradient, types);
  if (const auto* pooling = dynamic_cast<const ops::MaxPool2dOp*>(&op)) return onednn::kernel_of(*pooling, types);
  return nullptr;
}

void use_one_thread() { omp_set_num_threads(1); }

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_instruction_set() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "sse41";
    case dnnl_cpu_isa_avx:
      return "avx";
    case dnnl_cpu_isa_avx2:
      return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
      return "avx2_vnni";
    case dnnl_cpu_isa_avx512_core:
      return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
      return "avx512_core_amx";
    default:
      return fmt::format("isa_{:x}", static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  }
}

}  // namespace lockstep
