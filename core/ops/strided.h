#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/ops/kernels.h"
#include "core/ops/rules.h"

/// Walking several arrays together, each with strides of its own: broadcasting (stride 0), transposing, slicing.
namespace lockstep::ops {

template <int N>
struct StridedLoop {
  static constexpr int max_rank = 8;

  int rank = 1;                   ///< at least 1
  int64_t sizes[max_rank] = {1};  ///< outermost first
  int64_t strides[N][max_rank] = {};

  int64_t inner() const { return sizes[rank - 1]; }
  int64_t outer() const {
    int64_t count = 1;
    for (int i = 0; i + 1 < rank; ++i) count *= sizes[i];
    return count;
  }
  /// Stride of an array along the innermost axis.
  LOCKSTEP_HD int64_t step(int n) const { return strides[n][rank - 1]; }
  /// Where an array's elements of one run of the innermost axis begin.
  LOCKSTEP_HD int64_t offset(int n, int64_t row) const {
    int64_t result = 0;
    for (int i = rank - 2; i >= 0; --i) {
      result += row % sizes[i] * strides[n][i];
      row /= sizes[i];
    }
    return result;
  }
};

/// Axes that all arrays walk through as one are merged, axes of size 1 dropped. Throws M03 when more than 8 axes remain.
template <int N>
StridedLoop<N> strided_loop(std::string_view op, const Shape& sizes, const std::array<Shape, N>& strides) {
  Shape merged_sizes;
  std::array<Shape, N> merged;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 1) continue;
    bool merge = !merged_sizes.empty();
    for (int n = 0; n < N && merge; ++n) merge = merged[n].back() == strides[n][axis] * sizes[axis];
    if (merge) {
      merged_sizes.back() *= sizes[axis];
      for (int n = 0; n < N; ++n) merged[n].back() = strides[n][axis];
    } else {
      merged_sizes.push_back(sizes[axis]);
      for (int n = 0; n < N; ++n) merged[n].push_back(strides[n][axis]);
    }
  }
  StridedLoop<N> loop;
  if (merged_sizes.size() > StridedLoop<N>::max_rank) throw shape_error(op, "more than 8 axes that differ in layout; reshape to fewer");
  if (merged_sizes.empty()) return loop;
  loop.rank = static_cast<int>(merged_sizes.size());
  for (int i = 0; i < loop.rank; ++i) {
    loop.sizes[i] = merged_sizes[static_cast<size_t>(i)];
    for (int n = 0; n < N; ++n) loop.strides[n][i] = merged[n][static_cast<size_t>(i)];
  }
  return loop;
}

/// Strides with which an array of `shape` is read as one of the wider shape `sizes`.
inline Shape broadcast_strides(const Shape& shape, const Shape& sizes) {
  const Shape own = row_major_strides(shape);
  Shape result(sizes.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[shape.size() - 1 - i] != 1) result[sizes.size() - 1 - i] = own[shape.size() - 1 - i];
  }
  return result;
}

/// Elements from one place to another. Array 0 of the loop is `from`, 1 is `to`.
template <class T>
void strided_copy(const KernelArguments& arguments, const StridedLoop<2>& loop, const T* from, T* to) {
  const int64_t inner = loop.inner();
  const int64_t chunk = chunk_of(arguments, inner, inner);
  const int64_t chunks = inner > 0 ? (inner + chunk - 1) / chunk : 0;
  launch(arguments, loop.outer() * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t row = i / chunks;
    const int64_t begin = i % chunks * chunk;
    const int64_t count = begin + chunk < inner ? chunk : inner - begin;
    const int64_t from_step = loop.step(0);
    const int64_t to_step = loop.step(1);
    const T* x = from + loop.offset(0, row) + begin * from_step;
    T* y = to + loop.offset(1, row) + begin * to_step;
    if (from_step == 1 && to_step == 1) {
      for (int64_t j = 0; j < count; ++j) y[j] = x[j];
    } else {
      for (int64_t j = 0; j < count; ++j) y[j * to_step] = x[j * from_step];
    }
  });
}

}  // namespace lockstep::ops
