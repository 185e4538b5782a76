#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/activation.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = activation(x kernel + bias). x (N, ..., I), kernel (I, units), bias (units) -> (N, ..., units).
/// The kernel may be borrowed, also transposed; `units` is then its other size and may be left out.
class Dense final : public Layer {
 public:
  std::string_view type() const override { return "Dense"; }

  void fields(Fields& fields) override {
    fields.add("units", units_, "size of the output's last axis; needed unless the kernel is borrowed").at_least(1);
    fields.add("activation", activation_, "function of the result");
    fields.add("use_bias", use_bias_, "adds a bias");
    fields.add("kernel_initializer", kernel_initializer_, "of the kernel");
    fields.add("bias_initializer", bias_initializer_, "of the bias");
    fields.add("kernel_regularizer", kernel_regularizer_, "a loss of the kernel");
    fields.add("bias_regularizer", bias_regularizer_, "a loss of the bias");
    add_constraint(fields, "kernel_constraint", constraint_);
    add_constraint(fields, "bias_constraint", constraint_);
    accept_null(fields, "quantization_config");
    accept_null(fields, "lora_rank");
    accept_null(fields, "lora_alpha");
  }

  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    if (inputs[0].shape().size() < 2) throw Error("M11", context.path(), fmt::format("needs inputs of shape (rows, ..., features), got {}", text_of(inputs[0].shape())));
    const Symbol x = context.computed(inputs[0]);
    bool transposed = false;
    const Symbol kernel = context.borrows("kernel") ? borrowed_kernel(context, x, transposed) : own_kernel(context, x);
    const int64_t units = kernel.shape()[transposed ? 0 : 1];
    Symbol bias;
    if (use_bias_) bias = context.weight({"bias", {units}, bias_initializer_, true, bias_regularizer_, {}});
    return {activation_.apply(ops::dense(x, kernel, bias, transposed), context.settings().semantics)};
  }

 private:
  Symbol own_kernel(LayerContext& context, Symbol x) const {
    if (!units_) throw Error("Y11", context.path(), "'units' is required: size of the output's last axis");
    return context.weight({"kernel", {x.last(), *units_}, kernel_initializer_, true, kernel_regularizer_, {}});
  }

  Symbol borrowed_kernel(LayerContext& context, Symbol x, bool& transposed) const {
    const std::string& source = borrow.at("kernel").as_string();
    const Symbol kernel = context.borrow(source);
    const Value* turned = borrow.find("transposed");
    transposed = turned && turned->as_boolean();
    const Shape shape = kernel.shape();
    if (shape.size() != 2) throw Error("Y36", context.path(), fmt::format("borrows '{}', which is {}; a kernel is a matrix", source, text_of(shape)));
    const int64_t in = shape[transposed ? 1 : 0], out = shape[transposed ? 0 : 1];
    if (in == x.last() && (!units_ || *units_ == out)) return kernel;
    const bool other_way = out == x.last() && (!units_ || *units_ == in);
    const std::string needs = fmt::format("({}, {})", x.last(), units_ ? fmt::to_string(*units_) : "units");
    throw Error("Y36", context.path(), fmt::format("borrows '{}', which is {}{}, but needs {}{}", source, text_of(shape), transposed ? " and transposed" : "", needs, !other_way ? "" : transposed ? "; leave out transposed: true"
                                                                                                                                                                                                   : "; set transposed: true?"));
  }

  std::optional<int64_t> units_;
  ActivationFunction activation_;
  bool use_bias_ = true;
  std::shared_ptr<const Initializer> kernel_initializer_ = make_initializer("glorot_uniform");
  std::shared_ptr<const Initializer> bias_initializer_ = make_initializer("zeros");
  std::shared_ptr<const Regularizer> kernel_regularizer_;
  std::shared_ptr<const Regularizer> bias_regularizer_;
  OnlyNull constraint_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Dense>();
