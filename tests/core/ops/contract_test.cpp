#include "tests/core/ops/contract.h"

#include <cmath>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Symbols = std::vector<Symbol>;

template <Symbol (*function)(Symbol)>
Row unary(std::string name, double low = -2, double high = 2) {
  return {std::move(name), {{{3, 7}, low, high, true}}, [](const Symbols& x) { return function(x[0]); }};
}

std::vector<Row> element_rows() {
  return {
      unary<ops::negative>("negative"),
      unary<ops::absolute>("absolute"),
      unary<ops::square>("square"),
      unary<ops::sqrt>("sqrt", 0.2, 3),
      unary<ops::rsqrt>("rsqrt", 0.5, 3),
      unary<ops::exp>("exp"),
      unary<ops::log>("log", 0.5, 3),
      unary<ops::log1p>("log1p", -0.5, 3),
      unary<ops::expm1>("expm1"),
      unary<ops::sign>("sign"),
      unary<ops::sin>("sin"),
      unary<ops::cos>("cos"),
      unary<ops::reciprocal>("reciprocal", 0.5, 3),
      unary<ops::floor>("floor"),
      unary<ops::ceil>("ceil"),
      unary<ops::erf>("erf"),
      unary<ops::tanh>("tanh"),
      unary<ops::sigmoid>("sigmoid"),
      unary<ops::is_finite>("is_finite"),
      unary<ops::identity>("identity"),
      unary<ops::stop_gradient>("stop_gradient"),
      {"clip", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::clip(x[0], -0.75, 1.25); }},
      {"add number", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::add(x[0], 0.5); }},
      {"multiply number", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::multiply(x[0], 1.5); }},
  };
}

std::vector<Row> activation_rows() {
  return {
      unary<ops::relu6>("relu6", -2, 8),
      unary<ops::selu>("selu"),
      unary<ops::silu>("silu"),
      unary<ops::mish>("mish"),
      unary<ops::softplus>("softplus", -4, 4),
      unary<ops::softsign>("softsign"),
      unary<ops::log_sigmoid>("log_sigmoid", -4, 4),
      unary<ops::hard_sigmoid>("hard_sigmoid", -5, 5),
      unary<ops::hard_sigmoid_keras2>("hard_sigmoid_keras2", -5, 5),
      unary<ops::hard_silu>("hard_silu", -5, 5),
      unary<ops::hard_tanh>("hard_tanh"),
      unary<ops::tanh_shrink>("tanh_shrink"),
      unary<ops::sparse_plus>("sparse_plus"),
      unary<ops::sparse_sigmoid>("sparse_sigmoid"),
      {"relu", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::relu(x[0]); }},
      {"relu full", {{{3, 7}, -2, 6, true}}, [](const Symbols& x) { return ops::relu(x[0], 0.1, 4.0, 0.5); }},
      {"leaky relu", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::relu(x[0], 0.2); }},
      {"elu", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::elu(x[0], 0.7); }},
      {"celu", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::celu(x[0], 0.7); }},
      {"gelu", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::gelu(x[0], false); }},
      {"gelu approximate", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::gelu(x[0], true); }},
      {"hard_shrink", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::hard_shrink(x[0]); }},
      {"soft_shrink", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::soft_shrink(x[0]); }},
      {"threshold", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::threshold(x[0], 0.3, -1.5); }},
      {"squareplus", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::squareplus(x[0]); }},
      {"glu", {{{3, 8}, -2, 2, true}}, [](const Symbols& x) { return ops::glu(x[0]); }},
      {"softmax", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::softmax(x[0]); }},
      {"softmax of a middle axis", {{{3, 4, 2}, -2, 2, true}}, [](const Symbols& x) { return ops::softmax(x[0], 1); }},
      {"log_softmax", {{{3, 7}, -2, 2, true}}, [](const Symbols& x) { return ops::log_softmax(x[0]); }},
      {"sparsemax", {{{3, 7}, -1, 1, true}}, [](const Symbols& x) { return ops::sparsemax(x[0]); }},
  };
}

template <Symbol (*function)(Symbol, Symbol)>
Row binary(std::string name, Shape a, Shape b, double low = -2, double high = 2) {
  const bool a_rows = a.size() > 1 && a[0] > 1;
  const bool b_rows = b.size() > 1 && b[0] > 1;
  return {std::move(name), {{std::move(a), low, high, a_rows}, {std::move(b), low, high, b_rows}}, [](const Symbols& x) { return function(x[0], x[1]); }};
}

std::vector<Row> binary_rows() {
  return {
      binary<ops::add>("add", {3, 40}, {3, 40}),
      binary<ops::add>("add row", {3, 40}, {40}),
      binary<ops::add>("add column", {3, 5}, {3, 1}),
      binary<ops::add>("add outer", {3, 1, 4}, {2, 1}),
      binary<ops::subtract>("subtract", {3, 5}, {}),
      binary<ops::subtract>("subtract from scalar", {}, {3, 5}),
      binary<ops::multiply>("multiply", {3, 5}, {1, 5}),
      binary<ops::multiply>("multiply same", {3, 5}, {3, 5}),
      binary<ops::divide>("divide", {3, 5}, {3, 5}, 0.5, 2),
      binary<ops::divide>("divide by column", {3, 5}, {3, 1}, 0.5, 2),
      binary<ops::divide_no_nan>("divide_no_nan", {3, 5}, {5}, 0.5, 2),
      binary<ops::power>("power", {3, 5}, {3, 5}, 0.5, 2),
      binary<ops::maximum>("maximum", {3, 5}, {3, 5}),
      binary<ops::minimum>("minimum", {3, 5}, {5}),
      {"where", {{{3, 5}, 0, 2, true, DType::boolean}, {{3, 5}, -2, 2, true}, {{5}, -2, 2}}, [](const Symbols& x) { return ops::where(ops::greater(x[1], x[2]), x[1], x[2]); }},
      {"where given", {{{3, 1}, 0, 2, true, DType::boolean}, {{3, 5}, -2, 2, true}, {{}, -2, 2}}, [](const Symbols& x) { return ops::where(x[0], x[1], x[2]); }},
      {"cast and back", {{{3, 5}, -2, 2, true}}, [](const Symbols& x) { return ops::cast(ops::cast(x[0], DType::f64), x[0].dtype()); }},
      {"integers", {{{3, 5}, -9, 9, true, DType::i64}, {{5}, -9, 9, false, DType::i64}}, [](const Symbols& x) { return ops::add(ops::multiply(x[0], x[1]), ops::maximum(x[0], x[1])); }},
      {"comparisons", {{{3, 5}, 0, 9, true, DType::i32}, {{5}, 0, 9, false, DType::i32}}, [](const Symbols& x) { return ops::logical_or(ops::less(x[0], x[1]), ops::logical_not(ops::not_equal(x[0], x[1]))); }},
  };
}

std::vector<Row> shape_rows() {
  return {
      {"reshape", {{{3, 4, 2}, -1, 1, true}}, [](const Symbols& x) { return ops::reshape(x[0], {x[0].shape()[0], 8}); }},
      {"transpose", {{{3, 4, 2}, -1, 1, true}}, [](const Symbols& x) { return ops::transpose(x[0], {2, 0, -2}); }},
      {"broadcast_to", {{{3, 1, 2}, -1, 1, true}}, [](const Symbols& x) { return ops::broadcast_to(x[0], {2, x[0].shape()[0], 4, 2}); }},
      {"expand_dims and squeeze", {{{3, 1, 2}, -1, 1, true}}, [](const Symbols& x) { return ops::squeeze(ops::expand_dims(x[0], -1), 1); }},
      {"concatenate", {{{3, 2}, -1, 1, true}, {{3, 4}, -1, 1, true}}, [](const Symbols& x) { return ops::concatenate(x); }},
      {"concatenate rows", {{{3, 2}, -1, 1, true}, {{1, 2}, -1, 1}}, [](const Symbols& x) { return ops::concatenate(x, 0); }},
      {"slice", {{{3, 9}, -1, 1, true}}, [](const Symbols& x) { return ops::slice(x[0], 1, 2, 3, 2); }},
      {"pad", {{{3, 4}, -1, 1, true}}, [](const Symbols& x) { return ops::pad(x[0], {{0, 0}, {1, 2}}, 0.5); }},
      {"sum", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::sum(x[0]); }},
      {"sum of rows", {{{5, 70}, -1, 1, true}}, [](const Symbols& x) { return ops::sum(x[0], {0}); }},
      {"sum of apart axes", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::sum(x[0], {0, 2}, true); }},
      {"mean", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::mean(x[0], {-1}); }},
      {"mean of rows", {{{3, 4}, -1, 1, true}}, [](const Symbols& x) { return ops::mean(x[0], {0}); }},
      {"max", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::max(x[0], {1}); }},
      {"min", {{{3, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::min(x[0], {-1}, true); }},
      {"argmax", {{{3, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::argmax(x[0]); }},
      {"sum_to", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::sum_to(x[0], {4, 1}); }},
  };
}

std::vector<Row> product_rows() {
  const auto matmul = [](bool transpose_a, bool transpose_b) { return [=](const Symbols& x) { return ops::matmul(x[0], x[1], transpose_a, transpose_b); }; };
  return {
      {"matmul", {{{3, 4}, -1, 1, true}, {{4, 5}}}, matmul(false, false)},
      {"matmul a^T", {{{4, 3}}, {{4, 5}}}, matmul(true, false)},
      {"matmul b^T", {{{3, 4}, -1, 1, true}, {{5, 4}}}, matmul(false, true)},
      {"matmul a^T b^T", {{{4, 3}}, {{5, 4}}}, matmul(true, true)},
      {"matmul over rows", {{{6, 3}, -1, 1, true}, {{6, 5}, -1, 1, true}}, matmul(true, false)},
      {"matmul wide", {{{3, 4}, -1, 1, true}, {{4, 70}}}, matmul(false, false)},
      {"matmul of batches", {{{2, 3, 4}, -1, 1, true}, {{2, 4, 5}, -1, 1, true}}, matmul(false, false)},
      {"matmul of broadcast batches", {{{2, 1, 3, 4}, -1, 1, true}, {{3, 4, 5}}}, matmul(false, false)},
      {"dense", {{{3, 4}, -1, 1, true}, {{4, 5}}, {{5}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], x[2]); }},
      {"dense without bias", {{{2, 3, 4}, -1, 1, true}, {{4, 5}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], Symbol()); }},
      {"dense transposed", {{{3, 4}, -1, 1, true}, {{5, 4}}, {{5}}}, [](const Symbols& x) { return ops::dense(x[0], x[1], x[2], true); }},
      {"bias_add", {{{2, 3, 4}, -1, 1, true}, {{4}}}, [](const Symbols& x) { return ops::bias_add(x[0], x[1]); }},
  };
}

std::vector<Row> image_rows() {
  const auto convolve = [](std::vector<int64_t> kernel, std::vector<int64_t> strides, std::vector<int64_t> dilation, bool same, int64_t groups) {
    return [=](const Symbols& x) { return ops::conv2d(x[0], x[1], ops::Window2D::of(x[0].shape(), kernel, strides, dilation, same), groups); };
  };
  const auto pool = [](std::vector<int64_t> kernel, std::vector<int64_t> strides, bool same) {
    return [=](const Symbols& x) { return ops::max_pool2d(x[0], ops::Window2D::of(x[0].shape(), kernel, strides, {1, 1}, same)); };
  };
  return {
      {"conv2d", {{{2, 5, 6, 3}, -1, 1, true}, {{3, 2, 3, 4}}}, convolve({3, 2}, {1, 1}, {1, 1}, false, 1)},
      {"conv2d same, strided", {{{2, 5, 6, 3}, -1, 1, true}, {{3, 2, 3, 4}}}, convolve({3, 2}, {2, 2}, {1, 1}, true, 1)},
      {"conv2d dilated", {{{2, 6, 6, 2}, -1, 1, true}, {{2, 2, 2, 3}}}, convolve({2, 2}, {1, 1}, {2, 3}, true, 1)},
      {"conv2d in groups", {{{2, 4, 4, 4}, -1, 1, true}, {{3, 3, 2, 6}}}, convolve({3, 3}, {1, 1}, {1, 1}, true, 2)},
      {"conv2d wide", {{{1, 4, 4, 2}, -1, 1, true}, {{3, 3, 2, 20}}}, convolve({3, 3}, {1, 1}, {1, 1}, true, 1)},
      {"max_pool2d", {{{2, 6, 5, 3}, -1, 1, true}}, pool({2, 2}, {2, 2}, false)},
      {"max_pool2d overlapping", {{{2, 6, 5, 20}, -1, 1, true}}, pool({3, 3}, {2, 1}, true), 2},
  };
}

std::vector<Row> loss_rows() {
  return {
      {"gather_rows", {{{4, 3}}, {{6, 2}, 0, 3.99, true, DType::i32}}, [](const Symbols& x) { return ops::gather_rows(x[0], x[1]); }},
      {"one_hot", {{{6}, -1, 4.99, true, DType::u8}, {{4}}}, [](const Symbols& x) { return ops::multiply(ops::one_hot(x[0], 4, x[1].dtype()), x[1]); }},
      {"softmax_cross_entropy", {{{3, 5}, -3, 3, true}}, [](const Symbols& x) { return ops::softmax_cross_entropy(x[0], ops::stop_gradient(ops::broadcast_to(x[0].graph().constant(tensor_of(x[0].dtype(), {5}, {0.5, 0, 0.25, 0.125, 0.5})), x[0].shape()))); }},
      {"sparse_softmax_cross_entropy", {{{3, 5}, -3, 3, true}, {{3}, 0, 4.99, true, DType::u8}}, [](const Symbols& x) { return ops::sparse_softmax_cross_entropy(x[0], x[1]); }},
      {"sigmoid_cross_entropy", {{{3, 5}, -3, 3, true}}, [](const Symbols& x) { return ops::sigmoid_cross_entropy(x[0], ops::stop_gradient(ops::multiply(x[0], 0))); }},
      {"dropout", {{{3, 7}, -1, 1, true}}, [](const Symbols& x) { return ops::dropout(x[0], 0.25, 5); }},
      {"dropout shared", {{{3, 4, 5}, -1, 1, true}}, [](const Symbols& x) { return ops::dropout(x[0], 0.25, 5, {-1, 1, 5}); }},
      {"replica_sum", {{{3, 7}, -1, 1, true}}, [](const Symbols& x) { return ops::replica_sum(x[0]); }},
      {"print and probe", {{{3, 7}, -1, 1, true}}, [](const Symbols& x) { return ops::liveness_probe(ops::print(x[0], "", 1), ""); }},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto* make : {element_rows, activation_rows, binary_rows, shape_rows, product_rows, image_rows, loss_rows}) {
    for (Row& row : make()) rows.push_back(std::move(row));
  }
  return rows;
}

TEST(OpContract, GradientsMatchCentralDifferences) {
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.name);
    const Built built = build(row, DType::f64);
    if (!built.loss) continue;
    Evaluation evaluation{feeds_of(row, DType::f64)};
    size_t gradient = 0;
    for (size_t i = 0; i < row.arguments.size(); ++i) {
      if (!has_gradient(row.arguments[i])) continue;
      const Symbol symbol = built.gradients[gradient++];
      Tensor& argument = evaluation.feeds[argument_name(i)];
      const std::vector<double> found = symbol ? values_of(evaluation.run(symbol)) : std::vector<double>(static_cast<size_t>(argument.elements()), 0.0);
      for (size_t e = 0; e < found.size(); ++e) {
        if (row.name == "stop_gradient") {
          EXPECT_EQ(found[e], 0);
          continue;
        }
        const double step = 1e-5;
        double& value = argument.as<double>()[e];
        const double before = value;
        value = before + step;
        const double above = values_of(evaluation.run(built.loss))[0];
        value = before - step;
        const double below = values_of(evaluation.run(built.loss))[0];
        value = before;
        const double expected = (above - below) / (2 * step);
        EXPECT_NEAR(found[e], expected, 1e-6 * (1 + std::fabs(expected))) << "argument " << i << ", element " << e;
      }
    }
  }
}

TEST(OpContract, NarrowTypesFollowF64) {
  const std::pair<DType, double> types[] = {{DType::f32, 3e-6}, {DType::f16, 5e-3}, {DType::bf16, 4e-2}};
  for (const Row& row : all_rows()) {
    for (const auto& [dtype, tolerance] : types) {
      SCOPED_TRACE(row.name + " in " + std::string(name_of(dtype)));
      const Built narrow = build(row, dtype);
      const Built wide = build(row, DType::f64);
      Evaluation in_narrow{feeds_of(row, dtype)};
      Evaluation in_wide{feeds_of(row, dtype)};
      for (size_t i = 0; i < row.arguments.size(); ++i) {
        Tensor& feed = in_wide.feeds[argument_name(i)];
        if (has_gradient(row.arguments[i])) feed = cast(feed, DType::f64);
      }
      const std::vector<Tensor> found = in_narrow.run(*narrow.graph, wanted_of(narrow));
      const std::vector<Tensor> expected = in_wide.run(*wide.graph, wanted_of(wide));
      ASSERT_EQ(found.size(), expected.size());
      for (size_t t = 0; t < found.size(); ++t) {
        const std::vector<double> a = values_of(found[t]);
        const std::vector<double> b = values_of(expected[t]);
        double size = 1;
        for (const double value : b) size = std::max(size, std::fabs(value));
        for (size_t e = 0; e < a.size(); ++e) EXPECT_NEAR(a[e], b[e], tolerance * row.tolerance * size) << "tensor " << t << ", element " << e;
      }
    }
  }
}

TEST(OpContract, NoRowsGiveNoRowsAndZeroGradients) {
  for (const Row& row : all_rows()) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      SCOPED_TRACE(row.name + " in " + std::string(name_of(dtype)));
      const Built built = build(row, dtype, true);
      Evaluation evaluation{feeds_of(row, dtype, true)};
      const std::vector<Symbol> wanted = wanted_of(built);
      const std::vector<Tensor> results = evaluation.run(*built.graph, wanted);
      bool any_rows = false;
      for (const Argument& argument : row.arguments) any_rows = any_rows || argument.rows;
      if (!any_rows) continue;
      for (size_t t = 1; t < results.size(); ++t) {
        if (row.name == "concatenate rows") continue;  // its second argument's row is still there
        for (const double value : values_of(results[t])) EXPECT_EQ(value, 0);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
