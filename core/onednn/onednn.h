#pragma once

#include <memory>
#include <string>

#include "core/graph/op.h"

namespace lockstep {

/// A kernel of oneDNN for f32 products, convolutions and pooling; null where it has none, then the op's own kernel runs. Algorithm and layout are a
/// pure function of shapes, instruction set and oneDNN's version. To be made and run by one thread, which has called use_one_thread().
std::unique_ptr<Kernel> onednn_kernel(const Op& op, const NodeTypes& types);

/// oneDNN called from this thread uses this thread alone.
void use_one_thread();

/// "2.6.3".
std::string onednn_version();
/// What oneDNN generates code for on this processor: "avx2", "avx512_core".
std::string onednn_instruction_set();

}  // namespace lockstep
