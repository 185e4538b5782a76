#include "core/ops/convolution.h"

#include <fmt/format.h>

#include "core/ops/kernels.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

Window2D Window2D::of(const Shape& x, std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> dilation, bool same) {
  if (x.size() != 4) throw shape_error("window", fmt::format("expected (rows, height, width, channels), found {}", text_of(x)));
  Window2D window;
  for (size_t axis = 0; axis < 2; ++axis) {
    window.kernel[axis] = kernel.at(axis);
    window.strides[axis] = strides.at(axis);
    window.dilation[axis] = dilation.at(axis);
    if (window.kernel[axis] < 1 || window.strides[axis] < 1 || window.dilation[axis] < 1) throw shape_error("window", "kernel, strides and dilation are 1 or more");
    if (!same) continue;
    const int64_t size = x[axis + 1];
    const int64_t output = (size + window.strides[axis] - 1) / window.strides[axis];
    const int64_t reach = (output - 1) * window.strides[axis] + (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const int64_t padding = reach > size ? reach - size : 0;
    window.pad_before[axis] = padding / 2;
    window.pad_after[axis] = padding - padding / 2;
  }
  return window;
}

int64_t Window2D::output(int axis, int64_t input) const {
  const int64_t room = input + pad_before[axis] + pad_after[axis] - (kernel[axis] - 1) * dilation[axis] - 1;
  return room < 0 ? 0 : room / strides[axis] + 1;
}

namespace {

struct Sizes {
  int64_t n, h, w, c;        ///< x
  int64_t oh, ow, f;         ///< y
  int64_t group_c, group_f;  ///< channels and filters of a group
  Window2D window;

  /// The row or column of x that a cell of the kernel meets; -1 in the padding.
  LOCKSTEP_HD int64_t row_of(int64_t out, int64_t cell) const { return inside(out * window.strides[0] + cell * window.dilation[0] - window.pad_before[0], h); }
  LOCKSTEP_HD int64_t column_of(int64_t out, int64_t cell) const { return inside(out * window.strides[1] + cell * window.dilation[1] - window.pad_before[1], w); }
  /// The row or column of y whose window has this cell at a row or column of x; -1 when there is none.
  LOCKSTEP_HD int64_t out_row_of(int64_t row, int64_t cell) const { return out_of(row + window.pad_before[0] - cell * window.dilation[0], window.strides[0], oh); }
  LOCKSTEP_HD int64_t out_column_of(int64_t column, int64_t cell) const { return out_of(column + window.pad_before[1] - cell * window.dilation[1], window.strides[1], ow); }

 private:
  LOCKSTEP_HD static int64_t inside(int64_t i, int64_t size) { return i >= 0 && i < size ? i : -1; }
  LOCKSTEP_HD static int64_t out_of(int64_t distance, int64_t stride, int64_t size) { return distance >= 0 && distance % stride == 0 && distance / stride < size ? distance / stride : -1; }
};

Sizes sizes_of(const Convolution& convolution, const Shape& x, const Shape& kernel, const Shape& y) {
  return {x[0], x[1], x[2], x[3], y[1], y[2], kernel[3], kernel[2], kernel[3] / convolution.groups, convolution.window};
}

// Results that lie side by side and are summed together.
constexpr int lanes = 16;

template <class T>
void run_forward(const KernelArguments& arguments, const Sizes& s) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  const T* kernel = input_of<T>(arguments, 1);
  T* y = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, s.group_f, lanes);
  const int64_t chunks = (s.group_f + chunk - 1) / chunk;
  const int64_t groups = s.group_f > 0 ? s.f / s.group_f : 0;
  launch(arguments, s.n * s.oh * s.ow * groups * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t begin = i % chunks * chunk;
    const int64_t group = i / chunks % groups;
    const int64_t place = i / chunks / groups;
    const int64_t ow = place % s.ow;
    const int64_t oh = place / s.ow % s.oh;
    const int64_t n = place / s.ow / s.oh;
    const int width = static_cast<int>(begin + chunk < s.group_f ? chunk : s.group_f - begin);
    const int64_t filter = group * s.group_f + begin;
    C total[lanes];
    for (int k = 0; k < width; ++k) total[k] = 0;
    for (int64_t kh = 0; kh < s.window.kernel[0]; ++kh) {
      const int64_t row = s.row_of(oh, kh);
      if (row < 0) continue;
      for (int64_t kw = 0; kw < s.window.kernel[1]; ++kw) {
        const int64_t column = s.column_of(ow, kw);
        if (column < 0) continue;
        const T* from = x + ((n * s.h + row) * s.w + column) * s.c + group * s.group_c;
        const T* weights = kernel + (kh * s.window.kernel[1] + kw) * s.group_c * s.f + filter;
        for (int64_t c = 0; c < s.group_c; ++c) {
          const C value = static_cast<C>(from[c]);
          for (int k = 0; k < width; ++k) total[k] += value * static_cast<C>(weights[c * s.f + k]);
        }
      }
    }
    T* to = y + place * s.f + filter;
    for (int k = 0; k < width; ++k) to[k] = static_cast<T>(total[k]);
  });
}

template <class T>
void run_input_gradient(const KernelArguments& arguments, const Sizes& s) {
  using C = ComputeType<T>;
  const T* dy = input_of<T>(arguments, 0);
  const T* kernel = input_of<T>(arguments, 1);
  T* dx = output_of<T>(arguments);
  launch(arguments, s.n * s.h * s.w * s.c, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t channel = i % s.c;
    const int64_t group = channel / s.group_c;
    const int64_t column = i / s.c % s.w;
    const int64_t row = i / s.c / s.w % s.h;
    const int64_t n = i / s.c / s.w / s.h;
    C total = 0;
    for (int64_t kh = 0; kh < s.window.kernel[0]; ++kh) {
      const int64_t oh = s.out_row_of(row, kh);
      if (oh < 0) continue;
      for (int64_t kw = 0; kw < s.window.kernel[1]; ++kw) {
        const int64_t ow = s.out_column_of(column, kw);
        if (ow < 0) continue;
        const T* from = dy + ((n * s.oh + oh) * s.ow + ow) * s.f + group * s.group_f;
        const T* weights = kernel + ((kh * s.window.kernel[1] + kw) * s.group_c + channel % s.group_c) * s.f + group * s.group_f;
        for (int64_t f = 0; f < s.group_f; ++f) total += static_cast<C>(from[f]) * static_cast<C>(weights[f]);
      }
    }
    dx[i] = static_cast<T>(total);
  });
}

/// Sums over the places of one image first, then over images.
template <class T>
void run_kernel_gradient(const KernelArguments& arguments, const Sizes& s) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  const T* dy = input_of<T>(arguments, 1);
  T* dkernel = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, s.group_f, lanes);
  const int64_t chunks = (s.group_f + chunk - 1) / chunk;
  const int64_t groups = s.group_f > 0 ? s.f / s.group_f : 0;
  launch(arguments, s.window.kernel[0] * s.window.kernel[1] * s.group_c * groups * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t begin = i % chunks * chunk;
    const int64_t group = i / chunks % groups;
    const int64_t cell = i / chunks / groups;  // (kh, kw, c)
    const int64_t c = cell % s.group_c;
    const int64_t kw = cell / s.group_c % s.window.kernel[1];
    const int64_t kh = cell / s.group_c / s.window.kernel[1];
    const int width = static_cast<int>(begin + chunk < s.group_f ? chunk : s.group_f - begin);
    const int64_t filter = group * s.group_f + begin;
    C total[lanes];
    C part[lanes];
    for (int k = 0; k < width; ++k) total[k] = 0;
    for (int64_t n = 0; n < s.n; ++n) {
      for (int k = 0; k < width; ++k) part[k] = 0;
      for (int64_t oh = 0; oh < s.oh; ++oh) {
        const int64_t row = s.row_of(oh, kh);
        if (row < 0) continue;
        for (int64_t ow = 0; ow < s.ow; ++ow) {
          const int64_t column = s.column_of(ow, kw);
          if (column < 0) continue;
          const C value = static_cast<C>(x[((n * s.h + row) * s.w + column) * s.c + group * s.group_c + c]);
          const T* from = dy + ((n * s.oh + oh) * s.ow + ow) * s.f + filter;
          for (int k = 0; k < width; ++k) part[k] += value * static_cast<C>(from[k]);
        }
      }
      for (int k = 0; k < width; ++k) total[k] += part[k];
    }
    T* to = dkernel + cell * s.f + filter;
    for (int k = 0; k < width; ++k) to[k] = static_cast<T>(total[k]);
  });
}

}  // namespace

std::vector<TensorType> Conv2dOp::infer(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  const Shape& kernel = inputs[1].shape;
  expect_floating(name(), inputs[0]);
  expect_same_dtype(name(), inputs[0], inputs[1]);
  if (x.size() != 4) throw shape_error(name(), fmt::format("expected (rows, height, width, channels), found {}", text_of(x)));
  if (kernel.size() != 4 || kernel[0] != convolution.window.kernel[0] || kernel[1] != convolution.window.kernel[1]) {
    throw shape_error(name(), fmt::format("expected a kernel of shape ({}, {}, channels, filters), found {}", convolution.window.kernel[0], convolution.window.kernel[1], text_of(kernel)));
  }
  const int64_t groups = convolution.groups;
  if (groups < 1 || x[3] % groups != 0 || kernel[3] % groups != 0) throw shape_error(name(), fmt::format("{} groups do not divide {} channels and {} filters", groups, x[3], kernel[3]));
  if (kernel[2] * groups != x[3]) throw shape_error(name(), fmt::format("{} channels in {} groups need a kernel of {} channels, found {}", x[3], groups, x[3] / groups, text_of(kernel)));
  return {{inputs[0].dtype, {x[0], convolution.window.output(0, x[1]), convolution.window.output(1, x[2]), kernel[3]}}};
}

std::vector<Symbol> Conv2dOp::gradient(const NodeView& node, std::span<const Symbol> dy) const {
  const Symbol x = node.inputs[0];
  const Symbol kernel = node.inputs[1];
  return {add_node(std::make_shared<Conv2dInputGradientOp>(convolution, x.shape()), {dy[0], kernel}), add_node(std::make_shared<Conv2dKernelGradientOp>(convolution, kernel.shape()), {x, dy[0]})};
}

std::unique_ptr<Kernel> Conv2dOp::kernel(const NodeTypes& types) const {
  const Sizes sizes = sizes_of(convolution, types.inputs[0].shape, types.inputs[1].shape, types.outputs[0].shape);
  return floating_kernel(types.inputs[0].dtype, [sizes]<class T>(Tag<T>, const KernelArguments& arguments) { run_forward<T>(arguments, sizes); });
}

std::vector<TensorType> Conv2dInputGradientOp::infer(std::span<const TensorType> inputs) const { return {{inputs[0].dtype, x_shape}}; }

// The product is linear in each of its two arguments, so its gradients are these three ops again.
std::vector<Symbol> Conv2dInputGradientOp::gradient(const NodeView& node, std::span<const Symbol> ddx) const {
  return {conv2d(ddx[0], node.inputs[1], convolution.window, convolution.groups), add_node(std::make_shared<Conv2dKernelGradientOp>(convolution, node.inputs[1].shape()), {ddx[0], node.inputs[0]})};
}

std::unique_ptr<Kernel> Conv2dInputGradientOp::kernel(const NodeTypes& types) const {
  const Sizes sizes = sizes_of(convolution, x_shape, types.inputs[1].shape, types.inputs[0].shape);
  return floating_kernel(types.inputs[0].dtype, [sizes]<class T>(Tag<T>, const KernelArguments& arguments) { run_input_gradient<T>(arguments, sizes); });
}

std::vector<TensorType> Conv2dKernelGradientOp::infer(std::span<const TensorType> inputs) const { return {{inputs[0].dtype, kernel_shape}}; }

std::vector<Symbol> Conv2dKernelGradientOp::gradient(const NodeView& node, std::span<const Symbol> ddkernel) const {
  return {add_node(std::make_shared<Conv2dInputGradientOp>(convolution, node.inputs[0].shape()), {node.inputs[1], ddkernel[0]}), conv2d(node.inputs[0], ddkernel[0], convolution.window, convolution.groups)};
}

std::unique_ptr<Kernel> Conv2dKernelGradientOp::kernel(const NodeTypes& types) const {
  const Sizes sizes = sizes_of(convolution, types.inputs[0].shape, kernel_shape, types.inputs[1].shape);
  return floating_kernel(types.inputs[0].dtype, [sizes]<class T>(Tag<T>, const KernelArguments& arguments) { run_kernel_gradient<T>(arguments, sizes); });
}

Symbol conv2d(Symbol x, Symbol kernel, const Window2D& window, int64_t groups) { return add_node(std::make_shared<Conv2dOp>(Convolution{window, groups}), {x, kernel}); }

}  // namespace lockstep::ops
