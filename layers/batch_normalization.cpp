#include <numeric>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, each along `axis`; x of any rank -> same shape. Statistics are over all other axes.
/// In training they are the batch's: each replica's own, or with `synchronized` those of all replicas together; and
///   moving = moving * momentum + batch * (1 - momentum).
/// Otherwise, and where the layer is frozen, the moving ones. float16 and bfloat16 are computed in float32.
/// Keras 2 on images takes the unbiased variance (n / (n - 1)) into moving_variance, unless synchronized.
class BatchNormalization : public Layer {
 public:
  std::string_view type() const override { return "BatchNormalization"; }

  void fields(Fields& fields) override {
    common_fields(fields);
    fields.add("synchronized", synchronized_, "statistics of all replicas together");
  }

  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const Symbol given = context.computed(inputs[0]);
    const int64_t axis = checked_axis(context.path(), given, axis_.index);
    if (axis == 0) throw Error("M11", context.path(), fmt::format("axis {} is the batch's; normalize along another of {}", axis_.index, text_of(given.shape())));
    const bool half = given.dtype() == DType::f16 || given.dtype() == DType::bf16;
    const Symbol x = half ? ops::cast(given, DType::f32) : given;

    const Shape size{x.shape()[static_cast<size_t>(axis)]};
    const auto stored = [&](const char* name, const auto& initializer, bool trainable, const auto& regularizer) { return context.stored_weight({name, size, initializer, trainable, regularizer, {}}); };
    const Symbol gamma = scale_ ? ops::cast(stored("gamma", gamma_initializer_, true, gamma_regularizer_), x.dtype()) : Symbol();
    const Symbol beta = center_ ? ops::cast(stored("beta", beta_initializer_, true, beta_regularizer_), x.dtype()) : Symbol();
    const std::shared_ptr<const Regularizer> no_regularizer;
    const Symbol moving_mean = stored("moving_mean", moving_mean_initializer_, false, no_regularizer);
    const Symbol moving_variance = stored("moving_variance", moving_variance_initializer_, false, no_regularizer);

    Statistics statistics{ops::cast(moving_mean, x.dtype()), ops::cast(moving_variance, x.dtype())};
    if (context.training() && context.trainable()) {
      const Statistics moving = statistics;
      statistics = batch_statistics(context, x, axis);
      context.update(moving_mean, blend(moving.mean, statistics.mean, 1));
      context.update(moving_variance, blend(moving.variance, statistics.variance, unbiased_factor(context, x, axis)));
    }

    Symbol factor = ops::rsqrt(ops::add(statistics.variance, epsilon_));
    if (gamma) factor = ops::multiply(factor, gamma);
    const Symbol shifted = ops::multiply(statistics.mean, factor);
    const Symbol offset = beta ? ops::subtract(beta, shifted) : ops::negative(shifted);
    Shape along(x.shape().size(), 1);
    along[static_cast<size_t>(axis)] = size[0];
    const Symbol y = ops::add(ops::multiply(x, ops::reshape(factor, along)), ops::reshape(offset, along));
    return {ops::cast(y, given.dtype())};
  }

 protected:
  void common_fields(Fields& fields) {
    fields.add("axis", axis_, "the axis of the features");
    fields.add("momentum", momentum_, "share of the moving statistics that a step keeps");
    fields.add("epsilon", epsilon_, "added to the variance").at_least(0);
    fields.add("center", center_, "adds beta");
    fields.add("scale", scale_, "multiplies by gamma");
    fields.add("beta_initializer", beta_initializer_, "of beta");
    fields.add("gamma_initializer", gamma_initializer_, "of gamma");
    fields.add("moving_mean_initializer", moving_mean_initializer_, "of the moving mean");
    fields.add("moving_variance_initializer", moving_variance_initializer_, "of the moving variance");
    fields.add("beta_regularizer", beta_regularizer_, "a loss of beta");
    fields.add("gamma_regularizer", gamma_regularizer_, "a loss of gamma");
    add_constraint(fields, "beta_constraint", constraint_);
    add_constraint(fields, "gamma_constraint", constraint_);
    fields.add("renorm", renorm_, "false: no batch renormalization").write = nullptr;
    accept_null(fields, "renorm_clipping");
    fields.ignore("renorm_momentum");  // of renorm, which is off
  }

  bool synchronized_ = false;

 private:
  struct Statistics {
    Symbol mean;
    Symbol variance;
  };

  static std::vector<int64_t> other_axes(Symbol x, int64_t axis) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < static_cast<int64_t>(x.shape().size()); ++i) {
      if (i != axis) axes.push_back(i);
    }
    return axes;
  }

  /// Elements of a feature in so many rows.
  static double count(Symbol x, int64_t axis, int64_t rows) {
    double product = static_cast<double>(rows);
    for (size_t i = 1; i < x.shape().size(); ++i) {
      if (static_cast<int64_t>(i) != axis) product *= static_cast<double>(x.shape()[i]);
    }
    return product;
  }

  Statistics batch_statistics(LayerContext& context, Symbol x, int64_t axis) const {
    const std::vector<int64_t> axes = other_axes(x, axis);
    const Symbol total = x.graph().constant(x.dtype(), count(x, axis, context.settings().global_rows));
    // Two passes: deviations from the mean of all replicas don't cancel as E[x^2] - E[x]^2 does.
    const Symbol mean = synchronized_ ? ops::divide(ops::replica_sum(ops::sum(x, axes, true)), total) : ops::mean(x, axes, true);
    // The variance does not change with the mean to first order, so that no gradient need go this way.
    const Symbol squares = ops::square(ops::subtract(x, ops::stop_gradient(mean)));
    const Symbol variance = synchronized_ ? ops::divide(ops::replica_sum(ops::sum(squares, axes)), total) : ops::mean(squares, axes);
    return {ops::reshape(mean, {x.shape()[static_cast<size_t>(axis)]}), variance};
  }

  double unbiased_factor(LayerContext& context, Symbol x, int64_t axis) const {
    const bool fused = context.settings().semantics == 2 && !synchronized_ && x.shape().size() == 4 && axis == 3;
    const double n = count(x, axis, context.settings().rows);
    return fused && n > 1 ? n / (n - 1) : 1;
  }

  Symbol blend(Symbol moving, Symbol batch, double factor) const { return ops::add(ops::multiply(moving, momentum_), ops::multiply(batch, (1 - momentum_) * factor)); }

  Axis axis_;
  double momentum_ = 0.99;
  double epsilon_ = 1e-3;
  bool center_ = true;
  bool scale_ = true;
  std::shared_ptr<const Initializer> beta_initializer_ = make_initializer("zeros");
  std::shared_ptr<const Initializer> gamma_initializer_ = make_initializer("ones");
  std::shared_ptr<const Initializer> moving_mean_initializer_ = make_initializer("zeros");
  std::shared_ptr<const Initializer> moving_variance_initializer_ = make_initializer("ones");
  std::shared_ptr<const Regularizer> beta_regularizer_;
  std::shared_ptr<const Regularizer> gamma_regularizer_;
  OnlyNull constraint_;
  OnlyFalse renorm_;
};

/// Keras 2's name of a synchronized BatchNormalization.
class SyncBatchNormalization final : public BatchNormalization {
 public:
  SyncBatchNormalization() { synchronized_ = true; }
  std::string_view type() const override { return "SyncBatchNormalization"; }
  void fields(Fields& fields) override { common_fields(fields); }
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::BatchNormalization>();
template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::SyncBatchNormalization>();
