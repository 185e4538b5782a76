#include <optional>

#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// max_value above it, x from the threshold to it, negative_slope * (x - threshold) below. Same shape.
class ReLU final : public Layer {
 public:
  std::string_view type() const override { return "ReLU"; }
  void fields(Fields& fields) override {
    fields.add("max_value", max_value_, "largest value; null: none").at_least(0);
    fields.add("negative_slope", negative_slope_, "slope for values below the threshold").at_least(0);
    fields.add("threshold", threshold_, "values below it are damped").at_least(0);
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {ops::relu(context.computed(inputs[0]), negative_slope_, max_value_, threshold_)};
  }

 private:
  std::optional<double> max_value_;
  double negative_slope_ = 0;
  double threshold_ = 0;
};

/// x where positive, else negative_slope * x. Same shape.
class LeakyReLU final : public Layer {
 public:
  std::string_view type() const override { return "LeakyReLU"; }
  void fields(Fields& fields) override {
    fields.add("negative_slope", negative_slope_, "slope for values below zero").at_least(0);
    fields.add("alpha", negative_slope_, "Keras 2's name of negative_slope").at_least(0).write = nullptr;
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {ops::relu(context.computed(inputs[0]), negative_slope_)};
  }

 private:
  double negative_slope_ = 0.3;
};

/// x where positive, else alpha * (exp(x) - 1). Same shape.
class ELU final : public Layer {
 public:
  std::string_view type() const override { return "ELU"; }
  void fields(Fields& fields) override { fields.add("alpha", alpha_, "limit for negative values is -alpha"); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {ops::elu(context.computed(inputs[0]), alpha_)};
  }

 private:
  double alpha_ = 1;
};

/// exp(x) divided by its sum along an axis. Same shape.
class Softmax final : public Layer {
 public:
  std::string_view type() const override { return "Softmax"; }
  void fields(Fields& fields) override { fields.add("axis", axis_, "axis along which results add to 1"); }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    return {ops::softmax(context.computed(inputs[0]), checked_axis(context.path(), inputs[0], axis_.index))};
  }

 private:
  Axis axis_;
};

/// x where positive, else alpha * x with a learned alpha: one for each element of a row, or one along each of shared_axes. Same shape.
class PReLU final : public Layer {
 public:
  std::string_view type() const override { return "PReLU"; }
  void fields(Fields& fields) override {
    fields.add("alpha_initializer", alpha_initializer_, "of alpha");
    fields.add("alpha_regularizer", alpha_regularizer_, "a loss of alpha");
    add_constraint(fields, "alpha_constraint", constraint_);
    fields.add("shared_axes", shared_axes_, "axes along which alpha is one; null: none");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Symbol x = context.computed(inputs[0]);
    if (x.shape().empty()) expect_rank(context.path(), x, 2, "(rows, ...)");
    Shape shape(x.shape().begin() + 1, x.shape().end());
    for (const int64_t given : shared_axes_.value_or(std::vector<int64_t>{})) {
      const int64_t axis = checked_axis(context.path(), x, given);
      if (axis > 0) shape[static_cast<size_t>(axis - 1)] = 1;
    }
    const Symbol alpha = context.weight({"alpha", shape, alpha_initializer_, true, alpha_regularizer_, {}});
    return {ops::subtract(ops::relu(x), ops::multiply(alpha, ops::relu(ops::negative(x))))};
  }

 private:
  std::shared_ptr<const Initializer> alpha_initializer_ = make_initializer("zeros");
  std::shared_ptr<const Regularizer> alpha_regularizer_;
  OnlyNull constraint_;
  std::optional<std::vector<int64_t>> shared_axes_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::ReLU>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::LeakyReLU>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::ELU>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Softmax>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::PReLU>();
