#include "core/onednn/primitive.h"

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep::onednn {

namespace {

// The C interface: the C++ one makes a vector of arguments at every call.
void expect(dnnl_status_t status, std::string_view what) {
  if (status != dnnl_success) throw Error("X06", "", fmt::format("oneDNN: {} failed with status {}", what, static_cast<int>(status)));
}

}  // namespace

dnnl::memory PrimitiveKernel::input(int index, const dnnl::memory::desc& layout) {
  bound_.push_back({dnnl::memory(layout, engine_, nullptr), index, true});
  return bound_.back().memory;
}

dnnl::memory PrimitiveKernel::output(int index, const dnnl::memory::desc& layout) {
  bound_.push_back({dnnl::memory(layout, engine_, nullptr), index, false});
  return bound_.back().memory;
}

void PrimitiveKernel::then(dnnl::primitive primitive, std::initializer_list<std::pair<int, dnnl::memory>> arguments) {
  Call call;
  call.primitive = std::move(primitive);
  for (const auto& [name, memory] : arguments) {
    call.memory.push_back(memory);
    call.arguments.push_back({name, memory.get()});
  }
  calls_.push_back(std::move(call));
}

void PrimitiveKernel::then_reorder(const dnnl::memory& from, const dnnl::memory& to) { then(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}); }

void PrimitiveKernel::run(const KernelArguments& arguments) {
  for (const Bound& bound : bound_) {
    void* data = bound.is_input ? const_cast<void*>(arguments.inputs[bound.index]) : arguments.outputs[bound.index];
    expect(dnnl_memory_set_data_handle_v2(bound.memory.get(), data, stream_.get()), "setting memory");
  }
  for (const Call& call : calls_) {
    expect(dnnl_primitive_execute(call.primitive.get(), stream_.get(), static_cast<int>(call.arguments.size()), call.arguments.data()), "running a primitive");
  }
}

}  // namespace lockstep::onednn
