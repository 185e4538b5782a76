#include <algorithm>

#include <fmt/format.h>

#include "core/ops/ops.h"
#include "core/ops/strided.h"

namespace lockstep::ops {

namespace {

/// The same elements under another shape. May share its argument's memory; then nothing is moved.
class ReshapeOp final : public Op {
 public:
  explicit ReshapeOp(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "reshape"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    Shape result = shape_;
    int64_t known = 1;
    int64_t* open = nullptr;
    for (int64_t& size : result) {
      if (size >= 0) {
        known *= size;
      } else if (size == -1 && !open) {
        open = &size;
      } else {
        throw shape_error(name(), fmt::format("{} is no shape: sizes are 0 or more, and one may be -1", text_of(shape_)));
      }
    }
    const int64_t elements = inputs[0].elements();
    if (open && known > 0 && elements % known == 0) {
      *open = elements / known;
    } else if (open || known != elements) {
      throw shape_error(name(), fmt::format("{} has {} elements, which do not fill {}", text_of(inputs[0].shape), elements, text_of(shape_)));
    }
    return {{inputs[0].dtype, std::move(result)}};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override { return {reshape(dy[0], node.inputs[0].shape())}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    return make_kernel([bytes = types.inputs[0].bytes()](const KernelArguments& arguments) { copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], bytes); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  Shape shape_;
};

class TransposeOp final : public Op {
 public:
  explicit TransposeOp(std::vector<int64_t> axes) : axes_(std::move(axes)) {}
  std::string_view name() const override { return "transpose"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const Shape& shape = inputs[0].shape;
    std::vector<int64_t> sorted = axes_;
    std::ranges::sort(sorted);
    bool all = sorted.size() == shape.size();
    for (size_t i = 0; i < sorted.size() && all; ++i) all = sorted[i] == static_cast<int64_t>(i);
    if (!all) throw shape_error(name(), fmt::format("the axes {} are no order of the axes of shape {}", text_of(axes_), text_of(shape)));
    Shape result;
    for (const int64_t axis : axes_) result.push_back(shape[static_cast<size_t>(axis)]);
    return {{inputs[0].dtype, std::move(result)}};
  }
  std::vector<Symbol> gradient(const NodeView&, std::span<const Symbol> dy) const override {
    std::vector<int64_t> back(axes_.size());
    for (size_t i = 0; i < axes_.size(); ++i) back[static_cast<size_t>(axes_[i])] = static_cast<int64_t>(i);
    return {transpose(dy[0], back)};
  }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    const Shape own = row_major_strides(types.inputs[0].shape);
    const Shape& sizes = types.outputs[0].shape;
    Shape from;
    for (const int64_t axis : axes_) from.push_back(own[static_cast<size_t>(axis)]);
    const StridedLoop<2> loop = strided_loop<2>(name(), sizes, {from, row_major_strides(sizes)});
    return moving_kernel(types.inputs[0].dtype, [loop]<class T>(Tag<T>, const KernelArguments& arguments) { strided_copy<T>(arguments, loop, input_of<T>(arguments, 0), output_of<T>(arguments)); });
  }

 private:
  std::vector<int64_t> axes_;
};

class BroadcastOp final : public Op {
 public:
  explicit BroadcastOp(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "broadcast_to"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (broadcast_shape(name(), inputs[0].shape, shape_) != shape_) throw shape_error(name(), fmt::format("{} does not stretch to {}", text_of(inputs[0].shape), text_of(shape_)));
    return {{inputs[0].dtype, shape_}};
  }
  std::vector<Symbol> gradient(const NodeView& node, std::span<const Symbol> dy) const override { return {sum_to(dy[0], node.inputs[0].shape())}; }
  std::unique_ptr<Kernel> kernel(const NodeTypes& types) const override {
    if (types.inputs[0].elements() == types.outputs[0].elements()) {
      return make_kernel([bytes = types.inputs[0].bytes()](const KernelArguments& arguments) { copy_bytes(arguments, arguments.inputs[0], arguments.outputs[0], bytes); });
    }
    const StridedLoop<2> loop = strided_loop<2>(name(), shape_, {broadcast_strides(types.inputs[0].shape, shape_), row_major_strides(shape_)});
    return moving_kernel(types.inputs[0].dtype, [loop]<class T>(Tag<T>, const KernelArguments& arguments) { strided_copy<T>(arguments, loop, input_of<T>(arguments, 0), output_of<T>(arguments)); });
  }
  bool may_overwrite(size_t) const override { return true; }

 private:
  Shape shape_;
};

}  // namespace

// No shortcut where the shapes are equal: they may be so for one count of rows alone, and all replicas run the same nodes.
Symbol reshape(Symbol x, Shape shape) { return add_node(std::make_shared<ReshapeOp>(std::move(shape)), {x}); }

Symbol transpose(Symbol x, std::vector<int64_t> axes) {
  for (int64_t& axis : axes) axis = axis_of("transpose", axis, x);
  return add_node(std::make_shared<TransposeOp>(std::move(axes)), {x});
}

Symbol broadcast_to(Symbol x, Shape shape) { return add_node(std::make_shared<BroadcastOp>(std::move(shape)), {x}); }

Symbol expand_dims(Symbol x, int64_t axis) {
  Shape shape = x.shape();
  const int64_t places = static_cast<int64_t>(shape.size()) + 1;
  if (axis < -places || axis >= places) throw shape_error(x, "expand_dims", fmt::format("axis {} is no place in shape {}", axis, text_of(shape)));
  shape.insert(shape.begin() + (axis < 0 ? axis + places : axis), 1);
  return reshape(x, std::move(shape));
}

Symbol squeeze(Symbol x, int64_t axis) {
  Shape shape = x.shape();
  axis = axis_of("squeeze", axis, x);
  if (shape[static_cast<size_t>(axis)] != 1) throw shape_error(x, "squeeze", fmt::format("axis {} of shape {} is not of size 1", axis, text_of(shape)));
  shape.erase(shape.begin() + axis);
  return reshape(x, std::move(shape));
}

}  // namespace lockstep::ops
