#pragma once

#include <memory>

#include "core/graph/op.h"
#include "core/ops/convolution.h"
#include "core/ops/dense.h"

/// oneDNN's kernels by op, for f32. Null where oneDNN has nothing better than the reference.
namespace lockstep::onednn {

std::unique_ptr<Kernel> kernel_of(const ops::DenseOp& op, const NodeTypes& types);
std::unique_ptr<Kernel> kernel_of(const ops::MatmulOp& op, const NodeTypes& types);
std::unique_ptr<Kernel> kernel_of(const ops::Conv2dOp& op, const NodeTypes& types);
std::unique_ptr<Kernel> kernel_of(const ops::Conv2dInputGradientOp& op, const NodeTypes& types);
std::unique_ptr<Kernel> kernel_of(const ops::Conv2dKernelGradientOp& op, const NodeTypes& types);
std::unique_ptr<Kernel> kernel_of(const ops::MaxPool2dOp& op, const NodeTypes& types);

}  // namespace lockstep::onednn
