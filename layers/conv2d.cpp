#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/activation.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = activation(x * kernel + bias), * the cross-correlation over height and width.
/// x (N, H, W, C), kernel (KH, KW, C / groups, filters), bias (filters) -> (N, OH, OW, filters).
class Conv2D final : public Layer {
 public:
  std::string_view type() const override { return "Conv2D"; }

  void fields(Fields& fields) override {
    fields.add("filters", filters_, "channels of the output").require().at_least(1);
    fields.add("kernel_size", kernel_size_, "height and width of the kernel").require().at_least(1);
    fields.add("strides", strides_, "cells from one position to the next").at_least(1);
    fields.add("padding", padding_, "same: as many positions as cells, divided by the stride; valid: where the kernel fits").one_of({"valid", "same"});
    fields.add("data_format", data_format_, "order of axes");
    fields.add("dilation_rate", dilation_rate_, "cells from one tap of the kernel to the next").at_least(1);
    fields.add("groups", groups_, "parts of the channels that are convolved apart").at_least(1);
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
    expect_rank(context.path(), inputs[0], 4, "(rows, height, width, channels)");
    const Symbol x = context.computed(inputs[0]);
    if (x.last() % groups_ != 0 || filters_ % groups_ != 0) {
      throw Error("M11", context.path(), fmt::format("{} input channels and {} filters must both be divisible by groups, which is {}", x.last(), filters_, groups_));
    }
    const Symbol kernel = context.weight({"kernel", {kernel_size_.first, kernel_size_.second, x.last() / groups_, filters_}, kernel_initializer_, true, kernel_regularizer_, {}});
    const auto window = ops::Window2D::of(x.shape(), kernel_size_.list(), strides_.list(), dilation_rate_.list(), padding_ == "same");
    Symbol y = ops::conv2d(x, kernel, window, groups_);
    if (use_bias_) y = ops::bias_add(y, context.weight({"bias", {filters_}, bias_initializer_, true, bias_regularizer_, {}}));
    return {activation_.apply(y, context.settings().semantics)};
  }

 private:
  int64_t filters_ = 1;
  Pair kernel_size_;
  Pair strides_;
  std::string padding_ = "valid";
  ChannelsLast data_format_;
  Pair dilation_rate_;
  int64_t groups_ = 1;
  ActivationFunction activation_;
  bool use_bias_ = true;
  std::shared_ptr<const Initializer> kernel_initializer_ = make_initializer("glorot_uniform");
  std::shared_ptr<const Initializer> bias_initializer_ = make_initializer("zeros");
  std::shared_ptr<const Regularizer> kernel_regularizer_;
  std::shared_ptr<const Regularizer> bias_regularizer_;
  OnlyNull constraint_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Conv2D>();
