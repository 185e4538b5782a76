#include "layers/regularizer.h"

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/identifier.h"
#include "layers/norm.h"

namespace lockstep {

namespace {

Symbol sum_of_absolutes(Symbol x, double factor) { return ops::multiply(ops::sum(ops::absolute(x)), factor); }
Symbol sum_of_squares(Symbol x, double factor) { return ops::multiply(ops::sum(ops::square(x)), factor); }

/// l1 * sum(|w|).
struct L1 final : Regularizer {
  std::string_view type() const override { return "L1"; }
  void fields(Fields& fields) override { fields.add("l1", l1, "factor of the sum of absolute values").at_least(0); }
  Symbol loss(Symbol weight) const override { return sum_of_absolutes(weight, l1); }

  double l1 = 0.01;
};

/// l2 * sum(w^2).
struct L2 final : Regularizer {
  std::string_view type() const override { return "L2"; }
  void fields(Fields& fields) override { fields.add("l2", l2, "factor of the sum of squares").at_least(0); }
  Symbol loss(Symbol weight) const override { return sum_of_squares(weight, l2); }

  double l2 = 0.01;
};

/// l1 * sum(|w|) + l2 * sum(w^2).
struct L1L2 final : Regularizer {
  std::string_view type() const override { return "L1L2"; }
  void fields(Fields& fields) override {
    fields.add("l1", l1, "factor of the sum of absolute values").at_least(0);
    fields.add("l2", l2, "factor of the sum of squares").at_least(0);
  }
  Symbol loss(Symbol weight) const override {
    if (l2 == 0) return sum_of_absolutes(weight, l1);
    if (l1 == 0) return sum_of_squares(weight, l2);
    return ops::add(sum_of_absolutes(weight, l1), sum_of_squares(weight, l2));
  }

  double l1 = 0;
  double l2 = 0;
};

/// factor * the mean of |cosine| over pairs of different rows (or columns) of a matrix.
struct Orthogonal final : Regularizer {
  std::string_view type() const override { return "OrthogonalRegularizer"; }
  void fields(Fields& fields) override {
    fields.add("factor", factor, "factor of the mean").at_least(0);
    fields.add("mode", mode, "which vectors should be orthogonal").one_of({"rows", "columns"});
  }
  Symbol loss(Symbol weight) const override {
    if (weight.shape().size() != 2) throw Error("M11", "", fmt::format("OrthogonalRegularizer needs a matrix, got {}", text_of(weight.shape())));
    const bool rows = mode == "rows";
    const Symbol x = l2_normalize(weight, rows ? 1 : 0);
    const Symbol product = rows ? ops::matmul(x, x, false, true) : ops::matmul(x, x, true, false);
    const int64_t size = weight.shape()[rows ? 0 : 1];
    if (size < 2) return ops::multiply(ops::sum(product), 0);  // no pairs
    Tensor others({DType::f64, {size, size}});
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = 0; j < size; ++j) others.as<double>()[static_cast<size_t>(i * size + j)] = i == j ? 0 : 1;
    }
    const Symbol off_diagonal = ops::multiply(product, weight.graph().constant(cast(others, weight.dtype())));
    const double pairs = static_cast<double>(size) * static_cast<double>(size - 1) / 2;
    return sum_of_absolutes(off_diagonal, factor * 0.5 / pairs);
  }

  double factor = 0.01;
  std::string mode = "rows";
};

using Made = std::shared_ptr<Regularizer>;
template <class T>
Made make() {
  return std::make_shared<T>();
}

const NamedMaker<Made> list[] = {
    {{"L1", "l1"}, make<L1>},
    {{"L2", "l2"}, make<L2>},
    {{"L1L2", "l1_l2"}, make<L1L2>},
    {{"OrthogonalRegularizer", "orthogonal_regularizer"}, make<Orthogonal>},
};

}  // namespace

std::shared_ptr<const Regularizer> make_regularizer(const Value& value) {
  const Identifier identifier = read_identifier(value, "regularizer");
  Made regularizer = make_named<Made>(list, identifier, "regularizer");
  Fields fields;
  regularizer->fields(fields);
  read_fields(identifier.config, fields, identifier.name);
  return regularizer;
}

Value to_keras(const Regularizer& regularizer) {
  Fields fields;
  const_cast<Regularizer&>(regularizer).fields(fields);  // only reads
  return keras_class_config("keras.regularizers", regularizer.type(), write_fields(fields));
}

}  // namespace lockstep
