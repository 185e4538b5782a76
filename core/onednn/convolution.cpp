#include <cstring>
#include <string_view>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/onednn/kernels.h"
#include "core/onednn/primitive.h"

namespace lockstep::onednn {

namespace {

using dnnl::memory;

memory::desc f32_layout(const memory::dims& sizes, const memory::dims& strides) { return {sizes, memory::data_type::f32, strides}; }

/// Axes in oneDNN's order (rows, channels, height, width), where they lie in ours.
memory::desc images_of(const Shape& x) { return f32_layout({x[0], x[3], x[1], x[2]}, {x[1] * x[2] * x[3], 1, x[2] * x[3], x[3]}); }

memory::dims weight_sizes(const Shape& kernel, int64_t groups) {
  const int64_t filters = kernel[3] / groups;
  return groups == 1 ? memory::dims{filters, kernel[2], kernel[0], kernel[1]} : memory::dims{groups, filters, kernel[2], kernel[0], kernel[1]};
}

memory::desc weights_of(const Shape& kernel, int64_t groups) {
  const int64_t filters = kernel[3];
  memory::dims strides = {1, filters, kernel[1] * kernel[2] * filters, kernel[2] * filters};
  if (groups > 1) strides.insert(strides.begin(), filters / groups);
  return f32_layout(weight_sizes(kernel, groups), strides);
}

/// Weights in the layout that the vectorised direct convolution wants, into which ours are copied at each run (1 to 15 microseconds). In our own layout
/// oneDNN 2.6 would take its product of unfolded images: two to three times slower forward, up to twice backward (64 images, 4 to 32 channels, AVX2).
memory::desc free_weights_of(const Shape& kernel, int64_t groups) { return {weight_sizes(kernel, groups), memory::data_type::f32, memory::format_tag::any}; }

memory::dims strides_of(const ops::Window2D& window) { return {window.strides[0], window.strides[1]}; }
memory::dims holes_of(const ops::Window2D& window) { return {window.dilation[0] - 1, window.dilation[1] - 1}; }
memory::dims before_of(const ops::Window2D& window) { return {window.pad_before[0], window.pad_before[1]}; }
memory::dims after_of(const ops::Window2D& window) { return {window.pad_after[0], window.pad_after[1]}; }

bool any_empty(const NodeTypes& types) {
  for (const TensorType& type : types.inputs) {
    if (type.elements() == 0) return true;
  }
  return types.outputs[0].elements() == 0;
}

std::unique_ptr<Kernel> zeros(const NodeTypes& types) {
  return make_kernel([bytes = types.outputs[0].bytes()](const KernelArguments& arguments) {
    if (bytes > 0) std::memset(arguments.outputs[0], 0, bytes);
  });
}

/// Null for what oneDNN lacks, or has only as a plain loop, which is no better than ours.
template <class Make>
std::unique_ptr<Kernel> unless_plain(Make make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return nullptr;
  }
}

template <class Description>
bool is_plain(const Description& description) {
  return std::string_view(description.impl_info_str()).starts_with("ref");
}

dnnl::convolution_forward::primitive_desc forward_of(const ops::Convolution& convolution, const memory::desc& x, const memory::desc& weights, const memory::desc& y, const dnnl::engine& engine) {
  const ops::Window2D& window = convolution.window;
  return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, weights, y, strides_of(window), holes_of(window), before_of(window), after_of(window)}, engine};
}

}  // namespace

std::unique_ptr<Kernel> kernel_of(const ops::Conv2dOp& op, const NodeTypes& types) {
  if (any_empty(types)) return zeros(types);
  return unless_plain([&]() -> std::unique_ptr<Kernel> {
    const Shape& kernel = types.inputs[1].shape;
    const int64_t groups = op.convolution.groups;
    auto result = std::make_unique<PrimitiveKernel>();
    const auto description = forward_of(op.convolution, images_of(types.inputs[0].shape), free_weights_of(kernel, groups), images_of(types.outputs[0].shape), result->engine());
    if (is_plain(description)) return nullptr;
    const memory x = result->input(0, description.src_desc());
    memory weights = result->input(1, weights_of(kernel, groups));
    if (description.weights_desc() != weights.get_desc()) {
      const memory ours = weights;
      weights = result->own(description.weights_desc());
      result->then_reorder(ours, weights);
    }
    result->then(dnnl::convolution_forward(description), {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, result->output(0, description.dst_desc())}});
    return result;
  });
}

std::unique_ptr<Kernel> kernel_of(const ops::Conv2dInputGradientOp& op, const NodeTypes& types) {
  if (any_empty(types)) return zeros(types);
  return unless_plain([&]() -> std::unique_ptr<Kernel> {
    const Shape& kernel = types.inputs[1].shape;
    const int64_t groups = op.convolution.groups;
    const ops::Window2D& window = op.convolution.window;
    auto result = std::make_unique<PrimitiveKernel>();
    const memory::desc dx = images_of(types.outputs[0].shape);
    const memory::desc dy = images_of(types.inputs[0].shape);
    const memory::desc wanted = free_weights_of(kernel, groups);
    const auto forward = forward_of(op.convolution, dx, wanted, dy, result->engine());
    const dnnl::convolution_backward_data::primitive_desc description({dnnl::algorithm::convolution_direct, dx, wanted, dy, strides_of(window), holes_of(window), before_of(window), after_of(window)}, result->engine(), forward);
    if (is_plain(description)) return nullptr;
    memory weights = result->input(1, weights_of(kernel, groups));
    if (description.weights_desc() != weights.get_desc()) {
      const memory ours = weights;
      weights = result->own(description.weights_desc());
      result->then_reorder(ours, weights);
    }
    result->then(dnnl::convolution_backward_data(description), {{DNNL_ARG_DIFF_DST, result->input(0, dy)}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, result->output(0, dx)}});
    return result;
  });
}

std::unique_ptr<Kernel> kernel_of(const ops::Conv2dKernelGradientOp& op, const NodeTypes& types) {
  if (any_empty(types)) return zeros(types);
  return unless_plain([&]() -> std::unique_ptr<Kernel> {
    const Shape& kernel = types.outputs[0].shape;
    const int64_t groups = op.convolution.groups;
    const ops::Window2D& window = op.convolution.window;
    auto result = std::make_unique<PrimitiveKernel>();
    const memory::desc x = images_of(types.inputs[0].shape);
    const memory::desc dy = images_of(types.inputs[1].shape);
    const memory::desc wanted = free_weights_of(kernel, groups);
    const auto forward = forward_of(op.convolution, x, wanted, dy, result->engine());
    const dnnl::convolution_backward_weights::primitive_desc description({dnnl::algorithm::convolution_direct, x, wanted, dy, strides_of(window), holes_of(window), before_of(window), after_of(window)}, result->engine(), forward);
    if (is_plain(description)) return nullptr;
    const memory ours = result->output(0, weights_of(kernel, groups));
    const bool same = description.diff_weights_desc() == ours.get_desc();
    const memory weights = same ? ours : result->own(description.diff_weights_desc());
    result->then(dnnl::convolution_backward_weights(description), {{DNNL_ARG_SRC, result->input(0, x)}, {DNNL_ARG_DIFF_DST, result->input(1, dy)}, {DNNL_ARG_DIFF_WEIGHTS, weights}});
    if (!same) result->then_reorder(weights, ours);
    return result;
  });
}

std::unique_ptr<Kernel> kernel_of(const ops::MaxPool2dOp& op, const NodeTypes& types) {
  // From 16 channels on our own kernel, a vector loop over channels, takes less than half the time (AVX2).
  if (any_empty(types) || types.inputs[0].shape[3] >= 16) return nullptr;
  return unless_plain([&]() -> std::unique_ptr<Kernel> {
    const ops::Window2D& window = op.window;
    auto result = std::make_unique<PrimitiveKernel>();
    const memory::desc x = images_of(types.inputs[0].shape);
    const memory::desc y = images_of(types.outputs[0].shape);
    const dnnl::pooling_v2_forward::primitive_desc description({dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max, x, y, strides_of(window), {window.kernel[0], window.kernel[1]}, holes_of(window), before_of(window), after_of(window)}, result->engine());
    if (is_plain(description)) return nullptr;
    result->then(dnnl::pooling_v2_forward(description), {{DNNL_ARG_SRC, result->input(0, x)}, {DNNL_ARG_DST, result->output(0, y)}});
    return result;
  });
}

}  // namespace lockstep::onednn
