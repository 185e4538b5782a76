#include <fmt/format.h>

#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/strided.h"
#include "core/random/philox.h"

namespace lockstep::ops {

namespace {

struct Draws {
  uint64_t stream = 0;
  double rate = 0;
  bool one_row = false;  ///< all rows share row 0's draws
};

template <class C>
struct Keep {
  float rate;
  C scale;
  LOCKSTEP_HD C operator()(C x, uint32_t bits) const { return uniform_f32(bits) >= rate ? x * scale : C(0); }
};

template <class C>
Keep<C> keep_of(double rate) {
  return {static_cast<float>(rate), rate < 1 ? static_cast<C>(1 / (1 - rate)) : C(0)};
}

RandomKey key_of(const KernelArguments& arguments, const Draws& draws) {
  return RandomKey{arguments.step->seed, draws.stream}.with(static_cast<uint64_t>(arguments.step->step));
}

/// A draw for each element: four of them from one block of bits.
template <class T>
void run_each(const KernelArguments& arguments, const Draws& draws, int64_t rows, int64_t row_elements) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  const RandomKey key = key_of(arguments, draws);
  const Keep<C> keep = keep_of<C>(draws.rate);
  const int64_t first_row = draws.one_row ? 0 : arguments.replica->rows.begin;
  const int64_t blocks = (row_elements + 3) / 4;
  launch(arguments, rows * blocks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t row = i / blocks;
    const int64_t block = i % blocks;
    const RandomBits bits = random_bits(key, static_cast<uint64_t>(draws.one_row ? 0 : first_row + row), static_cast<uint64_t>(block));
    const int64_t left = row_elements - block * 4;
    const int64_t begin = row * row_elements + block * 4;
    for (int k = 0; k < (left < 4 ? left : 4); ++k) y[begin + k] = static_cast<T>(keep(static_cast<C>(x[begin + k]), bits.word[k]));
  });
}

/// Draws that several elements of a row share. `within` walks over a row: array 0 is the element, 1 its draw.
template <class T>
void run_shared(const KernelArguments& arguments, const Draws& draws, int64_t rows, int64_t row_elements, const StridedLoop<2>& within) {
  using C = ComputeType<T>;
  const T* x = input_of<T>(arguments, 0);
  T* y = output_of<T>(arguments);
  const RandomKey key = key_of(arguments, draws);
  const Keep<C> keep = keep_of<C>(draws.rate);
  const int64_t first_row = draws.one_row ? 0 : arguments.replica->rows.begin;
  const int64_t inner = within.inner();
  launch(arguments, rows * row_elements, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t row = i / row_elements;
    const int64_t element = i % row_elements;
    const int64_t draw = within.offset(1, element / inner) + element % inner * within.step(1);
    const RandomBits bits = random_bits(key, static_cast<uint64_t>(draws.one_row ? 0 : first_row + row), static_cast<uint64_t>(draw / 4));
    y[i] = static_cast<T>(keep(static_cast<C>(x[i]), bits.word[draw % 4]));
  });
}

/// Its own gradient: the same draws scale dy.
class DropoutOp final : public Op {
 public:
  DropoutOp(Draws draws, Shape noise_shape) : draws_(draws), noise_shape_(std::move(noise_shape)) {}
  std::string_view name() const override { return "dropout"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const Shape& x = inputs[0].shape;
    expect_floating(name(), inputs[0]);
    expect_rank_at_least(name(), inputs[0], 1);
    if (!(draws_.rate >= 0 && draws_.rate <= 1)) throw shape_error(name(), fmt::format("the rate is {}; expected 0 to 1", draws_.rate));
    bool fits = noise_shape_.empty() || noise_shape_.size() == x.size();
    for (size_t i = 0; i < noise_shape_.size() && fits; ++i) fits = noise_shape_[i] == -1 || noise_shape_[i] == 1 || noise_shape_[i] == x[i];
    if (!fits) throw shape_error(name(), fmt::format("the noise shape {} does not stretch to {}", text_of(noise_shape_), text_of(x)));
    return {inputs[0]};
  }
  std::vector<Symbol> gradient(const NodeView&, std::span<const Symbol> dy) const override { return {add_node(std::make_shared<DropoutOp>(draws_, noise_shape_), {dy[0]})}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& x = types.inputs[0].shape;
    const Shape row(x.begin() + 1, x.end());
    Shape noise = row;
    for (size_t i = 1; i < noise_shape_.size(); ++i) {
      if (noise_shape_[i] != -1) noise[i - 1] = noise_shape_[i];
    }
    const StridedLoop<2> within = strided_loop<2>(name(), row, {row_major_strides(row), broadcast_strides(noise, row)});
    return floating_kernel(types.inputs[0].dtype, [draws = draws_, rows = x[0], row_elements = elements_of(row), within, each = noise == row]<class T>(Tag<T>, const KernelArguments& arguments) {
      if (each) {
        run_each<T>(arguments, draws, rows, row_elements);
      } else {
        run_shared<T>(arguments, draws, rows, row_elements, within);
      }
    });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  Draws draws_;
  Shape noise_shape_;
};

}  // namespace

Symbol dropout(Symbol x, double rate, uint64_t stream, Shape noise_shape) {
  const bool one_row = !noise_shape.empty() && noise_shape[0] == 1;
  return add_node(std::make_shared<DropoutOp>(Draws{stream, rate, one_row}, std::move(noise_shape)), {x});
}

}  // namespace lockstep::ops
