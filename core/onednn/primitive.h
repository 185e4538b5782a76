#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/graph/op.h"

namespace lockstep::onednn {

/// Primitives that run one after the other on an op's inputs and outputs. Made once; a run re-points their memory and allocates nothing of its own.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  const dnnl::engine& engine() const { return engine_; }
  dnnl::memory input(int index, const dnnl::memory::desc& layout);
  dnnl::memory output(int index, const dnnl::memory::desc& layout);
  /// Memory that the kernel keeps, for a layout of oneDNN's own.
  dnnl::memory own(const dnnl::memory::desc& layout) { return dnnl::memory(layout, engine_); }

  /// Arguments by oneDNN's names: DNNL_ARG_SRC and so on.
  void then(dnnl::primitive primitive, std::initializer_list<std::pair<int, dnnl::memory>> arguments);
  /// Copies from one layout to another.
  void then_reorder(const dnnl::memory& from, const dnnl::memory& to);

  void run(const KernelArguments& arguments) override;

 private:
  struct Bound {
    dnnl::memory memory;
    int index;
    bool is_input;
  };
  struct Call {
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memory;  // keeps what the arguments point at
    std::vector<dnnl_exec_arg_t> arguments;
  };

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Bound> bound_;
  std::vector<Call> calls_;
};

}  // namespace lockstep::onednn
