#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "core/ops/convolution.h"
#include "core/ops/kernels.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

namespace {

struct Sizes {
  int64_t n, h, w, c;
  int64_t oh, ow;
  Window2D window;

  /// The row or column of x under a cell of the window; outside 0..size-1 it is padding.
  LOCKSTEP_HD int64_t row_of(int64_t oh, int64_t kh) const { return oh * window.strides[0] + kh * window.dilation[0] - window.pad_before[0]; }
  LOCKSTEP_HD int64_t column_of(int64_t ow, int64_t kw) const { return ow * window.strides[1] + kw * window.dilation[1] - window.pad_before[1]; }
};

// Channels that are compared side by side.
constexpr int lanes = 32;

/// The maximum of a window and the cell (kh * width + kw) where it first stands, for each of `width` channels from x on; cell -1 where all is padding,
/// which never is the maximum. The first NaN is.
template <class T>
struct Maxima {
  using C = ComputeType<T>;
  using Cell = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;  // as wide as a value: one vector mask serves both

  C best[lanes];
  Cell cell[lanes];

  LOCKSTEP_HD void find(const Sizes& s, const T* x, int64_t oh, int64_t ow, int width) {
    for (int k = 0; k < width; ++k) {
      best[k] = -std::numeric_limits<C>::infinity();
      cell[k] = -1;
    }
    for (int64_t kh = 0; kh < s.window.kernel[0]; ++kh) {
      const int64_t row = s.row_of(oh, kh);
      if (row < 0 || row >= s.h) continue;
      for (int64_t kw = 0; kw < s.window.kernel[1]; ++kw) {
        const int64_t column = s.column_of(ow, kw);
        if (column < 0 || column >= s.w) continue;
        const T* from = x + (row * s.w + column) * s.c;
        const Cell here = static_cast<Cell>(kh * s.window.kernel[1] + kw);
        for (int k = 0; k < width; ++k) take(k, static_cast<C>(from[k]), here);
      }
    }
  }

 private:
  LOCKSTEP_HD void take(int k, C value, Cell here) {
    const bool better = (cell[k] < 0) | (value > best[k]) | ((value != value) & (best[k] == best[k]));
    best[k] = better ? value : best[k];
    cell[k] = better ? here : cell[k];
  }
};

template <class T>
void run_forward(const KernelArguments& arguments, const Sizes& s) {
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, s.c, lanes);
  const int64_t chunks = (s.c + chunk - 1) / chunk;
  launch(arguments, s.n * s.oh * s.ow * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t channel = i % chunks * chunk;
    const int64_t place = i / chunks;
    const int width = static_cast<int>(channel + chunk < s.c ? chunk : s.c - channel);
    Maxima<T> maxima;
    maxima.find(s, x + place / s.ow / s.oh * s.h * s.w * s.c + channel, place / s.ow % s.oh, place % s.ow, width);
    T* to = y + place * s.c + channel;
    for (int k = 0; k < width; ++k) to[k] = static_cast<T>(maxima.best[k]);
  });
}

/// Windows may overlap: those of one image and channel add to it one after the other.
template <class T>
void run_gradient(const KernelArguments& arguments, const Sizes& s) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  const T* dy = input_of<T>(arguments, 1);
  T* dx = output_of<T>(arguments);
  fill_zero(arguments, dx, static_cast<size_t>(s.n * s.h * s.w * s.c) * sizeof(T));
  const int64_t chunk = chunk_of(arguments, s.c, lanes);
  const int64_t chunks = (s.c + chunk - 1) / chunk;
  launch(arguments, s.n * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t channel = i % chunks * chunk;
    const int64_t n = i / chunks;
    const int width = static_cast<int>(channel + chunk < s.c ? chunk : s.c - channel);
    const int64_t image = n * s.h * s.w * s.c + channel;
    Maxima<T> maxima;
    for (int64_t oh = 0; oh < s.oh; ++oh) {
      for (int64_t ow = 0; ow < s.ow; ++ow) {
        maxima.find(s, x + image, oh, ow, width);
        const T* from = dy + ((n * s.oh + oh) * s.ow + ow) * s.c + channel;
        for (int64_t kh = 0; kh < s.window.kernel[0]; ++kh) {
          const int64_t row = s.row_of(oh, kh);
          if (row < 0 || row >= s.h) continue;
          for (int64_t kw = 0; kw < s.window.kernel[1]; ++kw) {
            const int64_t column = s.column_of(ow, kw);
            if (column < 0 || column >= s.w) continue;
            const int64_t here = kh * s.window.kernel[1] + kw;
            T* to = dx + image + (row * s.w + column) * s.c;
            for (int k = 0; k < width; ++k) to[k] = static_cast<T>(static_cast<C>(to[k]) + (maxima.cell[k] == here ? static_cast<C>(from[k]) : C(0)));
          }
        }
      }
    }
  });
}

Sizes sizes_of(const Window2D& window, const Shape& x) { return {x[0], x[1], x[2], x[3], window.output(0, x[1]), window.output(1, x[2]), window}; }

class MaxPool2dGradientOp final : public GradientOp {
 public:
  explicit MaxPool2dGradientOp(Window2D window) : window_(window) {}
  std::string_view name() const override { return "max_pool2d_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return floating_kernel(types.inputs[0].dtype, [sizes = sizes_of(window_, types.inputs[0].shape)]<class T>(Tag<T>, const KernelArguments& arguments) { run_gradient<T>(arguments, sizes); });
  }

 private:
  Window2D window_;
};

}  // namespace

std::vector<TensorType> MaxPool2dOp::infer(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  expect_floating(name(), inputs[0]);
  if (x.size() != 4) throw shape_error(name(), fmt::format("expected (rows, height, width, channels), found {}", text_of(x)));
  return {{inputs[0].dtype, {x[0], window.output(0, x[1]), window.output(1, x[2]), x[3]}}};
}

std::vector<Symbol> MaxPool2dOp::gradient(const NodeView& node, std::span<const Symbol> dy) const { return {add_node(std::make_shared<MaxPool2dGradientOp>(window), {node.inputs[0], dy[0]})}; }

std::unique_ptr<Kernel> MaxPool2dOp::kernel(const NodeTypes& types) const {
  return floating_kernel(types.inputs[0].dtype, [sizes = sizes_of(window, types.inputs[0].shape)]<class T>(Tag<T>, const KernelArguments& arguments) { run_forward<T>(arguments, sizes); });
}

Symbol max_pool2d(Symbol x, const Window2D& window) { return add_node(std::make_shared<MaxPool2dOp>(window), {x}); }

}  // namespace lockstep::ops
