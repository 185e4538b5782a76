#include <fmt/format.h>

#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

// Every op here moves a box of elements from one array into another: concatenating, cutting, padding, and their gradients.

template <class T>
void fill(const KernelArguments& arguments, int64_t count, T value) {
  T* y = output_of<T>(arguments);
  launch(arguments, count, [=] LOCKSTEP_HD(int64_t i) { y[i] = value; });
}

class ConcatenateOp final : public Op {
 public:
  explicit ConcatenateOp(int64_t axis) : axis_(axis) {}
  std::string_view name() const override { return "concatenate"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    TensorType result = inputs[0];
    const size_t axis = static_cast<size_t>(axis_of(name(), axis_, result.shape));
    for (size_t i = 1; i < inputs.size(); ++i) {
      expect_same_dtype(name(), inputs[0], inputs[i]);
      Shape expected = inputs[0].shape;
      if (inputs[i].shape.size() == expected.size()) expected[axis] = inputs[i].shape[axis];
      if (inputs[i].shape != expected) throw shape_error(name(), fmt::format("shapes {} and {} differ beside axis {}", text_of(inputs[0].shape), text_of(inputs[i].shape), axis));
      result.shape[axis] += inputs[i].shape[axis];
    }
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    if (!is_floating(dy[0].dtype())) return std::vector<Symbol>(node.inputs.size());
    const size_t axis = static_cast<size_t>(axis_of(name(), axis_, dy[0].shape()));
    std::vector<Symbol> parts;
    int64_t begin = 0;
    for (const Symbol& input : node.inputs) {
      parts.push_back(slice(dy[0], axis_, begin, input.shape()[axis]));
      begin += input.shape()[axis];
    }
    return parts;
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const size_t axis = static_cast<size_t>(axis_of(name(), axis_, types.outputs[0].shape));
    const Shape to = row_major_strides(types.outputs[0].shape);
    struct Part {
      StridedLoop<2> loop;
      int64_t offset;
    };
    std::vector<Part> parts;
    int64_t offset = 0;
    for (const TensorType& type : types.inputs) {
      parts.push_back({strided_loop<2>(name(), type.shape, {row_major_strides(type.shape), to}), offset});
      offset += type.shape[axis] * to[axis];
    }
    return moving_kernel(types.outputs[0].dtype, [parts]<class T>(Tag<T>, const KernelArguments& arguments) {
      for (size_t i = 0; i < parts.size(); ++i) strided_copy<T>(arguments, parts[i].loop, input_of<T>(arguments, static_cast<int>(i)), output_of<T>(arguments) + parts[i].offset);
    });
  }

 private:
  int64_t axis_;
};

/// Indices begin, begin + step, ... along one axis.
struct Cut {
  size_t axis = 0;
  int64_t begin = 0;
  int64_t size = 0;
  int64_t step = 1;
};

/// The loop over the elements that a cut takes of an array of `shape`: array 0 is the whole, 1 the cut; and where in the whole they begin.
StridedLoop<2> loop_of(std::string_view op, const Cut& cut, const Shape& whole) {
  Shape strides = row_major_strides(whole);
  Shape sizes = whole;
  sizes[cut.axis] = cut.size;
  strides[cut.axis] *= cut.step;
  return strided_loop<2>(op, sizes, {strides, row_major_strides(sizes)});
}

int64_t offset_of(const Cut& cut, const Shape& whole) { return cut.begin * row_major_strides(whole)[cut.axis]; }

/// Zeros, but for the gradient of a cut in its places.
class SliceGradientOp final : public Op {
 public:
  SliceGradientOp(Cut cut, Shape whole) : cut_(cut), whole_(std::move(whole)) {}
  std::string_view name() const override { return "slice_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {{inputs[0].dtype, whole_}}; }
  std::vector<Symbol> gradient(const NodeView&, std::span<const Symbol> dy) const override {
    return {slice(dy[0], static_cast<int64_t>(cut_.axis), cut_.begin, cut_.size, cut_.step)};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    StridedLoop<2> loop = loop_of(name(), cut_, whole_);
    std::swap(loop.strides[0], loop.strides[1]);
    return moving_kernel(types.outputs[0].dtype, [loop, bytes = types.outputs[0].bytes(), offset = offset_of(cut_, whole_)]<class T>(Tag<T>, const KernelArguments& arguments) {
      fill_zero(arguments, arguments.outputs[0], bytes);
      strided_copy<T>(arguments, loop, input_of<T>(arguments, 0), output_of<T>(arguments) + offset);
    });
  }

 private:
  Cut cut_;
  Shape whole_;
};

class SliceOp final : public Op {
 public:
  explicit SliceOp(Cut cut) : cut_(cut) {}
  std::string_view name() const override { return "slice"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    TensorType result = inputs[0];
    int64_t& size = result.shape[cut_.axis];
    const int64_t last = cut_.begin + (cut_.size - 1) * cut_.step;
    const bool inside = cut_.size == 0 || (cut_.size > 0 && cut_.step > 0 && cut_.begin >= 0 && last < size);
    if (!inside) {
      throw shape_error(name(), fmt::format("{} elements from {} on, step {}, do not lie in axis {} of shape {}", cut_.size, cut_.begin, cut_.step, cut_.axis, text_of(inputs[0].shape)));
    }
    size = cut_.size;
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    if (!is_floating(dy[0].dtype())) return {Symbol()};
    return {add_node(std::make_shared<SliceGradientOp>(cut_, node.inputs[0].shape()), {dy[0]})};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& whole = types.inputs[0].shape;
    return moving_kernel(types.inputs[0].dtype, [loop = loop_of(name(), cut_, whole), offset = offset_of(cut_, whole)]<class T>(Tag<T>, const KernelArguments& arguments) {
      strided_copy<T>(arguments, loop, input_of<T>(arguments, 0) + offset, output_of<T>(arguments));
    });
  }

 private:
  Cut cut_;
};

using Margins = std::vector<std::pair<int64_t, int64_t>>;

class PadOp final : public Op {
 public:
  PadOp(Margins margins, double value) : margins_(std::move(margins)), value_(value) {}
  std::string_view name() const override { return "pad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    TensorType result = inputs[0];
    if (margins_.size() != result.shape.size()) throw shape_error(name(), fmt::format("margins for {} axes, found shape {}", margins_.size(), text_of(result.shape)));
    for (size_t i = 0; i < margins_.size(); ++i) {
      if (margins_[i].first < 0 || margins_[i].second < 0) throw shape_error(name(), "a margin is negative; slice instead");
      result.shape[i] += margins_[i].first + margins_[i].second;
    }
    return {result};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override {
    if (!is_floating(dy[0].dtype())) return {Symbol()};
    Symbol inner = dy[0];
    for (size_t i = 0; i < margins_.size(); ++i) {
      if (margins_[i].first + margins_[i].second > 0) inner = slice(inner, static_cast<int64_t>(i), margins_[i].first, node.inputs[0].shape()[i]);
    }
    return {inner};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape& sizes = types.inputs[0].shape;
    const Shape to = row_major_strides(types.outputs[0].shape);
    int64_t offset = 0;
    for (size_t i = 0; i < margins_.size(); ++i) offset += margins_[i].first * to[i];
    const StridedLoop<2> loop = strided_loop<2>(name(), sizes, {row_major_strides(sizes), to});
    return any_kernel(types.inputs[0].dtype, [loop, offset, count = types.outputs[0].elements(), value = value_]<class T>(Tag<T>, const KernelArguments& arguments) {
      fill<T>(arguments, count, static_cast<T>(static_cast<Wide<T>>(value)));
      strided_copy<T>(arguments, loop, input_of<T>(arguments, 0), output_of<T>(arguments) + offset);
    });
  }

 private:
  Margins margins_;
  double value_;
};

}  // namespace

Symbol concatenate(const std::vector<Symbol>& parts, int64_t axis) {
  if (parts.empty()) throw shape_error("concatenate", "nothing to concatenate");
  if (parts.size() == 1) return parts.front();
  return parts.front().graph().add(std::make_shared<ConcatenateOp>(axis), parts).front();
}

Symbol slice(Symbol x, int64_t axis, int64_t begin, int64_t size, int64_t step) {
  const Cut cut{static_cast<size_t>(axis_of("slice", axis, x)), begin, size, step};
  return add_node(std::make_shared<SliceOp>(cut), {x});
}

Symbol pad(Symbol x, std::vector<std::pair<int64_t, int64_t>> before_after, double value) {
  return add_node(std::make_shared<PadOp>(std::move(before_after), value), {x});
}

}  // namespace lockstep::ops
