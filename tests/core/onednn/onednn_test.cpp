#include "core/onednn/onednn.h"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "core/ops/dense.h"
#include "tests/core/ops/contract.h"

namespace lockstep {
namespace {

using Symbols = std::vector<Symbol>;

/// A row, and how many of its nodes, forward and backward, oneDNN must take.
struct Case {
  Row row;
  int kernels;
};

std::vector<Case> cases() {
  const auto matmul = [](bool transpose_a, bool transpose_b) { return [=](const Symbols& x) { return ops::matmul(x[0], x[1], transpose_a, transpose_b); }; };
  const auto convolve = [](std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> dilation, bool same, int64_t groups) {
    return [=](const Symbols& x) { return ops::conv2d(x[0], x[1], ops::Window2D::of(x[0].shape(), kernel, strides, dilation, same), groups); };
  };
  const auto fused = [](const Symbols& x) {
    const auto op = ops::fused_with_relu(ops::DenseOp(false));
    return x[0].graph().add(op, x).front();
  };
  return {
      {{"matmul", {{{17, 40}, -1, 1, true}, {{40, 33}}}, matmul(false, false)}, 3},
      {{"matmul a^T", {{{40, 17}}, {{40, 33}}}, matmul(true, false)}, 3},
      {{"matmul b^T", {{{17, 40}, -1, 1, true}, {{33, 40}}}, matmul(false, true)}, 3},
      {{"matmul a^T b^T", {{{40, 17}}, {{33, 40}}}, matmul(true, true)}, 3},
      {{"matmul over rows", {{{6, 3}, -1, 1, true}, {{6, 5}, -1, 1, true}}, matmul(true, false)}, 3},
      {{"matmul of batches", {{{2, 1, 3, 4}, -1, 1, true}, {{3, 4, 5}}}, matmul(false, false)}, 3},
      {{"dense", {{{9, 20}, -1, 1, true}, {{20, 30}}, {{30}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], x[2]); }}, 3},
      {{"dense of an empty axis", {{{9, 0}, -1, 1, true}, {{0, 30}}, {{30}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], x[2]); }}, 3},
      {{"dense transposed", {{{2, 9, 20}, -1, 1, true}, {{30, 20}}, {{30}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], x[2], true); }}, 3},
      {{"dense and relu", {{{9, 20}, -1, 1, true}, {{20, 30}}, {{30}}}, fused}, 3},
      {{"dense and relu without bias", {{{9, 20}, -1, 1, true}, {{20, 30}}}, fused}, 3},
      {{"conv2d of one channel", {{{3, 9, 10, 1}, -1, 1, true}, {{3, 3, 1, 32}}}, convolve({3, 3}, {1, 1}, {1, 1}, false, 1)}, 3},
      {{"conv2d", {{{3, 7, 8, 16}, -1, 1, true}, {{3, 3, 16, 24}}}, convolve({3, 3}, {1, 1}, {1, 1}, true, 1)}, 3},
      {{"conv2d strided", {{{3, 7, 8, 5}, -1, 1, true}, {{3, 2, 5, 7}}}, convolve({3, 2}, {2, 2}, {1, 1}, true, 1)}, 3},
      {{"conv2d dilated", {{{2, 8, 8, 4}, -1, 1, true}, {{2, 2, 4, 8}}}, convolve({2, 2}, {1, 1}, {2, 3}, true, 1)}, 3},
      {{"conv2d 1x1", {{{2, 4, 4, 16}, -1, 1, true}, {{1, 1, 16, 8}}}, convolve({1, 1}, {1, 1}, {1, 1}, false, 1)}, 3},
      {{"conv2d in groups", {{{2, 5, 5, 8}, -1, 1, true}, {{3, 3, 4, 16}}}, convolve({3, 3}, {1, 1}, {1, 1}, true, 2)}, 3},
      {{"max_pool2d", {{{2, 6, 6, 8}, -1, 1, true}}, [](const Symbols& x) { return ops::max_pool2d(x[0], ops::Window2D::of(x[0].shape(), {2, 2}, {2, 2}, {1, 1}, false)); }}, 1},
      {{"max_pool2d same", {{{2, 7, 6, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::max_pool2d(x[0], ops::Window2D::of(x[0].shape(), {3, 3}, {2, 1}, {1, 1}, true)); }}, 1},
  };
}

/// Largest difference of two tensors, relative to the largest value.
double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values_of(a);
  const std::vector<double> y = values_of(b);
  double largest = 1;
  double result = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::fabs(y[i]));
    result = std::max(result, std::isnan(x[i]) ? 1e9 : std::fabs(x[i] - y[i]));
  }
  return result / largest;
}

TEST(OneDnn, AgreesWithTheReferenceForwardAndBackward) {
  use_one_thread();
  for (const Case& one : cases()) {
    for (const bool no_rows : {false, true}) {
      SCOPED_TRACE(one.row.name + (no_rows ? " without rows" : ""));
      const Built built = build(one.row, DType::f32, no_rows);
      Evaluation reference{feeds_of(one.row, DType::f32, no_rows)};
      Evaluation replaced{feeds_of(one.row, DType::f32, no_rows)};
      int kernels = 0;
      replaced.choose = [&](const Op& op, const NodeTypes& types) {
        std::unique_ptr<Kernel> kernel = onednn_kernel(op, types);
        kernels += kernel != nullptr;
        return kernel;
      };
      const std::vector<Tensor> found = replaced.run(*built.graph, wanted_of(built));
      const std::vector<Tensor> expected = reference.run(*built.graph, wanted_of(built));
      ASSERT_EQ(found.size(), expected.size());
      for (size_t t = 0; t < found.size(); ++t) EXPECT_LT(difference(found[t], expected[t]), 4e-6) << "tensor " << t;
      if (!no_rows) {
        EXPECT_EQ(kernels, one.kernels);
      }
    }
  }
}

TEST(OneDnn, AKernelMayRunAgainOnOtherMemory) {
  use_one_thread();
  const Row row = cases()[12].row;
  const Built built = build(row, DType::f32);
  const auto& node = built.graph->nodes()[static_cast<size_t>(built.graph->value(built.result.id()).node)];
  const NodeTypes types{{built.arguments[0].type(), built.arguments[1].type()}, {built.result.type()}, ""};
  const std::unique_ptr<Kernel> kernel = onednn_kernel(*node.op, types);
  ASSERT_NE(kernel, nullptr);
  StepContext step;
  const ReplicaContext replica;
  const auto run = [&](Tensor x, Tensor weights) {
    Tensor y(built.result.type());
    const void* inputs[] = {x.bytes().data(), weights.bytes().data()};
    void* outputs[] = {y.bytes().data()};
    kernel->run({inputs, outputs, &replica, &step, nullptr});
    return y;
  };
  const Tensor weights = random_tensor(types.inputs[1], 2);
  const Tensor first = run(random_tensor(types.inputs[0], 1), weights);
  const Tensor other = run(random_tensor(types.inputs[0], 5), random_tensor(types.inputs[1], 6));
  const Tensor again = run(random_tensor(types.inputs[0], 1), weights);
  EXPECT_EQ(hash_of(first.bytes()), hash_of(again.bytes()));
  EXPECT_NE(hash_of(first.bytes()), hash_of(other.bytes()));
}

TEST(OneDnn, LeavesOtherTypesToTheReference) {
  const NodeTypes types{{{DType::f64, {2, 3}}, {DType::f64, {3, 4}}}, {{DType::f64, {2, 4}}}, ""};
  EXPECT_EQ(onednn_kernel(ops::MatmulOp(false, false), types), nullptr);
}

TEST(OneDnn, ARowDoesNotDependOnTheThreadThatMadeItsKernel) {
  use_one_thread();
  const Row row = cases()[6].row;
  const auto result = [&] {
    const Built built = build(row, DType::f32);
    Evaluation evaluation{feeds_of(row, DType::f32)};
    evaluation.choose = onednn_kernel;
    return hash_of(evaluation.run(built.result).bytes());
  };
  std::string other;
  std::thread([&] {
    use_one_thread();
    other = result();
  }).join();
  EXPECT_EQ(result(), other);
}

}  // namespace
}  // namespace lockstep
