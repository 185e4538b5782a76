#include <limits>

#include <fmt/format.h>

#include "core/ops/kernels.h"
#include "core/ops/ops.h"
#include "core/ops/rules.h"

namespace lockstep::ops {

namespace {

/// -1 for an index outside 0..size-1.
LOCKSTEP_HD int64_t row_of(int64_t index, int64_t size) { return index >= 0 && index < size ? index : -1; }

struct Sizes {
  int64_t rows = 0;   ///< of the table
  int64_t width = 0;  ///< of a row
  int64_t count = 0;  ///< of indices
};

template <class T>
void run_gather(const KernelArguments& arguments, Sizes s) {
  const T* table = input_of<T>(arguments, 0);
  const int64_t* indices = input_of<int64_t>(arguments, 1);
  T* y = output_of<T>(arguments);
  const int64_t chunk = chunk_of(arguments, s.width, s.width);
  const int64_t chunks = (s.width + chunk - 1) / chunk;
  launch(arguments, s.count * chunks, [=] LOCKSTEP_HD(int64_t i) {
    const int64_t place = i / chunks;
    const int64_t begin = i % chunks * chunk;
    const int64_t row = row_of(indices[place], s.rows);
    T* to = y + place * s.width + begin;
    if (row < 0) {
      for (int64_t j = 0; j < chunk; ++j) to[j] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    } else {
      const T* from = table + row * s.width + begin;
      for (int64_t j = 0; j < chunk; ++j) to[j] = from[j];
    }
  });
}

/// A column after the other on the device, all of them together on the processor: each adds its rows in index order.
template <class T>
void run_scatter(const KernelArguments& arguments, Sizes s) {
  const T* dy = input_of<T>(arguments, 0);
  const int64_t* indices = input_of<int64_t>(arguments, 1);
  T* dtable = output_of<T>(arguments);
  fill_zero(arguments, dtable, static_cast<size_t>(s.rows * s.width) * sizeof(T));
  const int64_t chunk = chunk_of(arguments, s.width, s.width);
  launch(arguments, s.width / chunk, [=] LOCKSTEP_HD(int64_t i) {
    for (int64_t place = 0; place < s.count; ++place) {
      const int64_t row = row_of(indices[place], s.rows);
      if (row < 0) continue;
      const T* from = dy + place * s.width + i * chunk;
      T* to = dtable + row * s.width + i * chunk;
      for (int64_t j = 0; j < chunk; ++j) to[j] += from[j];
    }
  });
}

/// dy, indices -> dtable, in f32 or f64.
class GatherGradientOp final : public GradientOp {
 public:
  explicit GatherGradientOp(Shape table) : table_(std::move(table)) {}
  std::string_view name() const override { return "gather_rows_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {{inputs[0].dtype, table_}}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Sizes sizes{table_[0], table_[1], types.inputs[1].elements()};
    if (types.inputs[0].dtype == DType::f64) return make_kernel([sizes](const KernelArguments& arguments) { run_scatter<double>(arguments, sizes); });
    return make_kernel([sizes](const KernelArguments& arguments) { run_scatter<float>(arguments, sizes); });
  }

 private:
  Shape table_;
};

class GatherOp final : public Op {
 public:
  std::string_view name() const override { return "gather_rows"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    expect_floating(name(), inputs[0]);
    if (inputs[0].shape.size() != 2) throw shape_error(name(), fmt::format("expected a table with 2 axes, found {}", text_of(inputs[0].shape)));
    TensorType result{inputs[0].dtype, inputs[1].shape};
    result.shape.push_back(inputs[0].shape[1]);
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    // Many rows may fall on one: half types add in f32.
    const DType dtype = node.inputs[0].dtype();
    const Symbol wide = cast(dy[0], dtype == DType::f64 ? DType::f64 : DType::f32);
    return {cast(add_node(std::make_shared<GatherGradientOp>(node.inputs[0].shape()), {wide, node.inputs[1]}), dtype), Symbol()};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& table = types.inputs[0].shape;
    const Sizes sizes{table[0], table[1], types.inputs[1].elements()};
    return floating_kernel(types.inputs[0].dtype, [sizes]<class T>(Tag<T>, const KernelArguments& arguments) { run_gather<T>(arguments, sizes); });
  }
};

template <class T>
void run_one_hot(const KernelArguments& arguments, int64_t count, int64_t classes) {
  const int64_t* indices = input_of<int64_t>(arguments, 0);
  T* y = output_of<T>(arguments);
  launch(arguments, count * classes, [=] LOCKSTEP_HD(int64_t i) { y[i] = static_cast<T>(static_cast<float>(indices[i / classes] == i % classes)); });
}

class OneHotOp final : public Op {
 public:
  OneHotOp(int64_t classes, DType dtype) : classes_(classes), dtype_(dtype) {}
  std::string_view name() const override { return "one_hot"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (classes_ < 0) throw shape_error(name(), "the count of classes is negative");
    TensorType result{dtype_, inputs[0].shape};
    result.shape.push_back(classes_);
    return {result};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return any_kernel(dtype_, [count = types.inputs[0].elements(), classes = classes_]<class T>(Tag<T>, const KernelArguments& arguments) { run_one_hot<T>(arguments, count, classes); });
  }

 private:
  int64_t classes_;
  DType dtype_;
};

}  // namespace

Symbol gather_rows(Symbol table, Symbol indices) { return add_node(std::make_shared<GatherOp>(), {table, as_indices("gather_rows", indices)}); }
Symbol one_hot(Symbol indices, int64_t classes, DType dtype) { return add_node(std::make_shared<OneHotOp>(classes, dtype), {as_indices("one_hot", indices)}); }

}  // namespace lockstep::ops
