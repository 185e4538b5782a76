#include "core/communicator/tree.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

/// Elements added at a time, so that the scratch of a deep tree stays in the first-level cache.
constexpr int64_t chunk = 1024;

/// A constant number of elements vectorises at every level of optimisation.
constexpr int64_t lanes = 64;

template <class T, int arity>
[[gnu::always_inline]] inline T sum_of(const T* a, const T* b, const T* c, const T* d, int64_t i) {
  if constexpr (arity == 2) return a[i] + b[i];
  if constexpr (arity == 3) return (a[i] + b[i]) + c[i];
  return (a[i] + b[i]) + (c[i] + d[i]);
}

template <class T, int arity>
[[gnu::always_inline]] inline void add(const std::byte* const* sources, std::byte* out, int64_t count) {
  const T* a = reinterpret_cast<const T*>(sources[0]);
  const T* b = reinterpret_cast<const T*>(sources[1]);
  const T* c = reinterpret_cast<const T*>(sources[2]);
  const T* d = reinterpret_cast<const T*>(sources[3]);
  T* y = reinterpret_cast<T*>(out);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    // `out` may be one of the sources, never a shifted one.
#pragma GCC ivdep
    for (int64_t j = 0; j < lanes; ++j) y[i + j] = sum_of<T, arity>(a, b, c, d, i + j);
  }
  for (; i < count; ++i) y[i] = sum_of<T, arity>(a, b, c, d, i);
}

using Add = void (*)(const std::byte* const* sources, std::byte* out, int64_t count);

template <class T, int arity>
void add_plain(const std::byte* const* sources, std::byte* out, int64_t count) { add<T, arity>(sources, out, count); }

#if defined(__x86_64__)
// Chosen by hand: the resolvers that target_clones emits crash under the thread sanitizer.
template <class T, int arity>
[[gnu::target("avx2")]] void add_avx2(const std::byte* const* sources, std::byte* out, int64_t count) { add<T, arity>(sources, out, count); }

template <class T, int arity>
[[gnu::target("avx512f,prefer-vector-width=512")]] void add_avx512(const std::byte* const* sources, std::byte* out, int64_t count) {
  add<T, arity>(sources, out, count);
}

template <class T, int arity>
Add best_add() {
  if (__builtin_cpu_supports("avx512f")) return add_avx512<T, arity>;
  if (__builtin_cpu_supports("avx2")) return add_avx2<T, arity>;
  return add_plain<T, arity>;
}
#else
template <class T, int arity>
Add best_add() { return add_plain<T, arity>; }
#endif

template <class T>
void add_any(int arity, const std::byte* const* sources, std::byte* out, int64_t count) {
  static const Add kernels[] = {best_add<T, 2>(), best_add<T, 3>(), best_add<T, 4>()};
  kernels[arity - 2](sources, out, count);
}

void add(DType dtype, int arity, const std::byte* const* sources, std::byte* out, int64_t count) {
  switch (dtype) {
    case DType::f32: return add_any<float>(arity, sources, out, count);
    case DType::f64: return add_any<double>(arity, sources, out, count);
    default: return add_any<uint64_t>(arity, sources, out, count);  // two's complement: i64 adds by the same bits
  }
}

bool is_inside(Range node, Range run) { return run.begin <= node.begin && node.end <= run.end; }

void collect(Range node, Range run, std::vector<Range>& found) {
  if (is_inside(node, run)) {
    found.push_back(node);
    return;
  }
  if (node.end <= run.begin || run.end <= node.begin) return;
  const int64_t middle = tree_middle(node);
  collect({node.begin, middle}, run, found);
  collect({middle, node.end}, run, found);
}

/// The index of `node` among `inputs`, or -1.
int find_input(Range node, const std::vector<Range>& inputs) {
  const auto found = std::find(inputs.begin(), inputs.end(), node);
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

void append_postfix(Range node, const std::vector<Range>& inputs, std::vector<int>& code) {
  const int input = find_input(node, inputs);
  if (input >= 0) return code.push_back(input);
  const int64_t middle = tree_middle(node);
  append_postfix({node.begin, middle}, inputs, code);
  append_postfix({middle, node.end}, inputs, code);
  code.push_back(-1);
}

}  // namespace

int64_t tree_middle(Range node) {
  int64_t half = 1;
  while (half * 2 < node.size()) half *= 2;
  return node.begin + half;
}

std::vector<Range> subtrees_inside(int count, Range run) {
  std::vector<Range> found;
  if (run.size() > 0) collect({0, count}, run, found);
  return found;
}

void check_tree_adds(DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::u64) return;
  throw Error("X01", "", fmt::format("replicas are summed in float32, float64, int64 or uint64; found {}", name_of(dtype)));
}

std::vector<int> postfix_of(Range node, const std::vector<Range>& inputs) {
  std::vector<int> code;
  append_postfix(node, inputs, code);
  return code;
}

TreeSum::TreeSum(DType dtype, Range node, const std::vector<Range>& inputs) : dtype_(dtype), element_(size_of(dtype)), inputs_(inputs) {
  check_tree_adds(dtype);
  if (inputs_.size() > 1) plan(node, 0);
  int depth = 0;
  for (const Step& step : steps_) depth = std::max(depth, step.target);
  scratch_.resize(static_cast<size_t>(depth) * chunk * element_);
}

int TreeSum::input_of(Range node) const { return find_input(node, inputs_); }

/// Steps that leave the sum over `node` in an input or in scratch[scratch]; scratches above are free. Gives the source to read it from.
int TreeSum::plan(Range node, int scratch) {
  if (is_input(node)) return input_of(node);
  const int64_t middle = tree_middle(node);
  const Range left{node.begin, middle};
  const Range right{middle, node.end};
  Step step;
  step.target = scratch;
  int next = scratch;
  const auto put = [&](Range part) {
    const int source = plan(part, next);
    if (source < 0) ++next;
    step.sources[step.arity++] = source;
  };
  // A pair whose sum would only be read once is added on the way: three or four sources in one pass.
  if (!is_input(left)) {
    put({left.begin, tree_middle(left)});
    put({tree_middle(left), left.end});
    if (!is_input(right)) {
      put({right.begin, tree_middle(right)});
      put({tree_middle(right), right.end});
    } else {
      put(right);
    }
  } else {
    put(left);
    put(right);
  }
  steps_.push_back(step);
  return -1 - scratch;
}

const std::byte* TreeSum::run(const std::byte* const* inputs, int64_t first, int64_t count, std::byte* out) {
  if (steps_.empty()) return inputs[0] + static_cast<size_t>(first) * element_;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t size = std::min(chunk, count - begin);
    const auto scratch = [&](int number) {
      return number == 0 ? out + static_cast<size_t>(begin) * element_ : scratch_.data() + static_cast<size_t>(number - 1) * chunk * element_;
    };
    for (const Step& step : steps_) {
      const std::byte* sources[4] = {};
      for (int i = 0; i < step.arity; ++i) {
        const int source = step.sources[i];
        sources[i] = source < 0 ? scratch(-1 - source) : inputs[source] + static_cast<size_t>(first + begin) * element_;
      }
      add(dtype_, step.arity, sources, scratch(step.target), size);
    }
  }
  return out;
}

}  // namespace lockstep
