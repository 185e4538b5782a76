#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// True for a value that has no rows: a weight or a constant, or what is computed from those alone.
static bool is_weight(Symbol x) {
  const Graph::ValueInfo& info = x.graph().value(x.id());
  if (info.origin != Graph::Origin::node) return info.origin != Graph::Origin::input;
  const Graph::Node& node = x.graph().nodes()[static_cast<size_t>(info.node)];
  return std::ranges::all_of(node.inputs, [&](int id) { return is_weight(Symbol(&x.graph(), id)); });
}

/// Combines inputs element by element. Shapes are broadcast: where ranks differ, axes of size 1 are put after the rows, as Keras does; a weight is
/// aligned at its last axis.
class Merge : public Layer {
 public:
  void fields(Fields&) override {}
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    if (inputs.size() < 2) throw Error("M10", context.path(), fmt::format("takes two inputs or more, got {}", inputs.size()));
    const bool floating = std::ranges::any_of(inputs, [](Symbol x) { return is_floating(x.dtype()); });
    size_t rank = 0;
    for (const Symbol x : inputs) rank = std::max(rank, x.shape().size());
    std::vector<Symbol> aligned;
    for (Symbol x : inputs) {
      if (floating) x = context.computed(x);
      if (x.shape().size() < rank && !x.shape().empty() && !is_weight(x)) {
        Shape shape = x.shape();
        shape.insert(shape.begin() + 1, rank - shape.size(), 1);
        x = ops::reshape(x, shape);
      }
      aligned.push_back(x);
    }
    return {merge(context, aligned)};
  }

 protected:
  virtual Symbol merge(LayerContext& context, const std::vector<Symbol>& inputs) const = 0;

  static Symbol fold(const std::vector<Symbol>& inputs, Symbol (*combine)(Symbol, Symbol)) {
    Symbol result = inputs[0];
    for (size_t i = 1; i < inputs.size(); ++i) result = combine(result, inputs[i]);
    return result;
  }
};

/// y = x0 + x1 + ...
class Add final : public Merge {
 public:
  std::string_view type() const override { return "Add"; }
  Symbol merge(LayerContext&, const std::vector<Symbol>& inputs) const override { return fold(inputs, ops::add); }
};

/// y = x0 - x1.
class Subtract final : public Merge {
 public:
  std::string_view type() const override { return "Subtract"; }
  Symbol merge(LayerContext& context, const std::vector<Symbol>& inputs) const override {
    expect_inputs(context.path(), inputs, 2);
    return ops::subtract(inputs[0], inputs[1]);
  }
};

/// y = x0 * x1 * ...
class Multiply final : public Merge {
 public:
  std::string_view type() const override { return "Multiply"; }
  Symbol merge(LayerContext&, const std::vector<Symbol>& inputs) const override { return fold(inputs, ops::multiply); }
};

/// y = (x0 + x1 + ...) / count. Integers are cast first.
class Average final : public Merge {
 public:
  std::string_view type() const override { return "Average"; }
  Symbol merge(LayerContext& context, const std::vector<Symbol>& inputs) const override {
    return ops::multiply(context.computed(fold(inputs, ops::add)), 1.0 / static_cast<double>(inputs.size()));
  }
};

/// The larger of each element.
class Maximum final : public Merge {
 public:
  std::string_view type() const override { return "Maximum"; }
  Symbol merge(LayerContext&, const std::vector<Symbol>& inputs) const override { return fold(inputs, ops::maximum); }
};

/// The smaller of each element.
class Minimum final : public Merge {
 public:
  std::string_view type() const override { return "Minimum"; }
  Symbol merge(LayerContext&, const std::vector<Symbol>& inputs) const override { return fold(inputs, ops::minimum); }
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Add>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Subtract>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Multiply>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Average>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Maximum>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Minimum>();
