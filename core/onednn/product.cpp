#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/error/error.h"
#include "core/onednn/kernels.h"
#include "core/ops/launch.h"
#include "core/ops/rules.h"
#include "core/ops/strided.h"

namespace lockstep::onednn {

namespace {

/// y (n, m) = a (n, k) b (k, m), each row-major as stored, or transposed.
struct Product {
  int64_t n = 0;
  int64_t k = 0;
  int64_t m = 0;
  bool transpose_a = false;
  bool transpose_b = false;

  // dnnl_sgemm, not the matmul or inner-product primitive: all three run the same code on these layouts (64 x 784 x 256 and smaller, AVX2, measured
  // within noise), and this one costs a microsecond less a call.
  void run(const float* a, const float* b, float* y) const {
    if (n == 0 || m == 0) return;
    if (k == 0) {
      std::memset(y, 0, static_cast<size_t>(n * m) * sizeof(float));
      return;
    }
    const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', n, m, k, 1.0f, a, transpose_a ? n : k, b, transpose_b ? k : m, 0.0f, y, m);
    if (status != dnnl_success) throw Error("X06", "", fmt::format("dnnl_sgemm failed with status {}", static_cast<int>(status)));
  }
};

template <bool relu>
void finish_rows(const KernelArguments& arguments, const Product& shape, const float* bias) {
  auto* y = static_cast<float*>(arguments.outputs[0]);
  launch(arguments, shape.n, [y, bias, m = shape.m](int64_t row) {
    float* to = y + row * m;
    if (bias) {
      for (int64_t j = 0; j < m; ++j) {
        const float sum = to[j] + bias[j];
        to[j] = relu ? (sum > 0 || sum != sum ? sum : 0.0f) : sum;
      }
    } else {
      for (int64_t j = 0; j < m; ++j) to[j] = to[j] > 0 || to[j] != to[j] ? to[j] : 0.0f;
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> kernel_of(const ops::DenseOp& op, const NodeTypes& types) {
  const Shape& x = types.inputs[0].shape;
  const Product product{ops::product(x, 0, x.size() - 1), x.back(), types.outputs[0].shape.back(), false, op.kernel_transposed};
  return make_kernel([product, with_bias = types.inputs.size() > 2, relu = op.activation == ops::Activation::relu](const KernelArguments& arguments) {
    product.run(static_cast<const float*>(arguments.inputs[0]), static_cast<const float*>(arguments.inputs[1]), static_cast<float*>(arguments.outputs[0]));
    const float* bias = with_bias ? static_cast<const float*>(arguments.inputs[2]) : nullptr;
    if (relu) {
      finish_rows<true>(arguments, product, bias);
    } else if (bias) {
      finish_rows<false>(arguments, product, bias);
    }
  });
}

std::unique_ptr<Kernel> kernel_of(const ops::MatmulOp& op, const NodeTypes& types) {
  const Shape& a = types.inputs[0].shape;
  const Shape& b = types.inputs[1].shape;
  const Shape& y = types.outputs[0].shape;
  const Product product{y[y.size() - 2], a[op.transpose_a ? a.size() - 2 : a.size() - 1], y.back(), op.transpose_a, op.transpose_b};
  const Shape leading(y.begin(), y.end() - 2);
  const Shape strides_a = ops::broadcast_strides({a.begin(), a.end() - 2}, leading);
  const Shape strides_b = ops::broadcast_strides({b.begin(), b.end() - 2}, leading);
  // Matrices of a and b for each matrix of y.
  std::vector<std::pair<int64_t, int64_t>> pairs(static_cast<size_t>(elements_of(leading)));
  for (size_t i = 0; i < pairs.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    for (size_t axis = leading.size(); axis-- > 0; rest /= leading[axis]) {
      pairs[i].first += rest % leading[axis] * strides_a[axis];
      pairs[i].second += rest % leading[axis] * strides_b[axis];
    }
  }
  return make_kernel([product, pairs](const KernelArguments& arguments) {
    const auto* first_a = static_cast<const float*>(arguments.inputs[0]);
    const auto* first_b = static_cast<const float*>(arguments.inputs[1]);
    auto* to = static_cast<float*>(arguments.outputs[0]);
    for (const auto& [matrix_a, matrix_b] : pairs) {
      product.run(first_a + matrix_a * product.n * product.k, first_b + matrix_b * product.k * product.m, to);
      to += product.n * product.m;
    }
  });
}

}  // namespace lockstep::onednn
