#include "layers/losses/loss.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/graph/op.h"
#include "core/ops/ops.h"
#include "layers/identifier.h"

namespace lockstep {

// Defined in make_loss.h, made in each loss's own file.
template <class T>
std::shared_ptr<Loss> make_loss();

namespace losses {

using Made = std::shared_ptr<Loss>;

// Every loss: its class in Keras, its other names. One line a loss; `class X` also declares it.
static const NamedMaker<Made> list[] = {
    {{"BinaryCrossentropy", "binary_crossentropy", "bce", "BCE"}, make_loss<class BinaryCrossentropy>},
    {{"CategoricalCrossentropy", "categorical_crossentropy"}, make_loss<class CategoricalCrossentropy>},
    {{"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"}, make_loss<class MeanAbsoluteError>},
    {{"MeanSquaredError", "mean_squared_error", "mse", "MSE"}, make_loss<class MeanSquaredError>},
    {{"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"}, make_loss<class SparseCategoricalCrossentropy>},
};

}  // namespace losses

void Loss::base_fields(Fields& fields) {
  fields.add("name", name, "name of the loss");
  fields.add("reduction", reduction, "what the sum over samples is divided by").one_of({"sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", "auto"});
}

std::shared_ptr<const Loss> make_loss(const Value& value) {
  const Identifier identifier = read_identifier(value, "loss");
  const losses::Made loss = make_named<losses::Made>(losses::list, identifier, "loss");
  const Value* reduction = identifier.config.find("reduction");
  if (reduction && (reduction->is_null() || *reduction == Value("none"))) {
    fail_at(reduction->place(), "Y13", fmt::format("{}: reduction 'none' leaves no number to minimize; write sum_over_batch_size, mean_with_sample_weight or sum", identifier.name));
  }
  Fields fields;
  loss->base_fields(fields);
  loss->fields(fields);
  read_fields(identifier.config, fields, identifier.name);
  if (loss->reduction == "auto") loss->reduction = "sum_over_batch_size";
  return loss;
}

Value to_keras(const Loss& loss) {
  Fields fields;
  const_cast<Loss&>(loss).base_fields(fields);  // only reads
  const_cast<Loss&>(loss).fields(fields);
  return keras_class_config("keras.losses", loss.type(), write_fields(fields));
}

std::vector<std::string> loss_types() {
  std::vector<std::string> types;
  for (const auto& entry : losses::list) types.emplace_back(entry.names.front());
  return types;
}

std::pair<Symbol, Symbol> to_same_rank(Symbol a, Symbol b) {
  const size_t rank_a = a.shape().size(), rank_b = b.shape().size();
  if (rank_a == rank_b + 1 && a.last() == 1) {
    if (rank_b == 1) return {a, ops::expand_dims(b, -1)};
    return {ops::squeeze(a, -1), b};
  }
  if (rank_b == rank_a + 1 && b.last() == 1) {
    if (rank_a == 1) return {ops::expand_dims(a, -1), b};
    return {a, ops::squeeze(b, -1)};
  }
  return {a, b};
}

Symbol aligned_weight(Symbol sample_weight, Symbol values) {
  const Shape shape = values.shape();
  Symbol weight = sample_weight;
  if (weight.shape().size() == shape.size() + 1 && weight.last() == 1) weight = ops::squeeze(weight, -1);
  Shape aligned = weight.shape();
  bool fits = aligned.size() <= shape.size();
  aligned.resize(shape.size(), 1);
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = aligned[i] == shape[i] || (aligned[i] == 1 && i > 0);
  if (!fits) throw Error("M11", "", fmt::format("sample weights are {}, the losses {}; one weight a row, or as many axes as the losses, is needed", text_of(sample_weight.shape()), text_of(shape)));
  return ops::reshape(weight, aligned);
}

std::pair<Symbol, Symbol> matched(std::string_view loss, Symbol y_true, Symbol y_pred) {
  const auto [targets, predictions] = to_same_rank(ops::cast(y_true, y_pred.dtype()), y_pred);
  if (targets.shape() != predictions.shape()) {
    throw Error("M11", "", fmt::format("{} needs targets of the output's shape, {}, got {}", loss, text_of(y_pred.shape()), text_of(y_true.shape())));
  }
  return {targets, predictions};
}

Symbol logits_behind(Symbol y_pred, std::string_view op) {
  Graph& graph = y_pred.graph();
  const Graph::ValueInfo& info = graph.value(y_pred.id());
  if (info.origin != Graph::Origin::node) return {};
  const Graph::Node& node = graph.nodes()[static_cast<size_t>(info.node)];
  return node.op->name() == op ? Symbol(&graph, node.inputs.front()) : Symbol();
}

LossTerm reduce_weighted(const LossValues& given, Symbol sample_weight, std::string_view reduction, int64_t global_rows) {
  Graph& graph = given.values.graph();
  const Shape shape = given.values.shape();  // a copy: new nodes move what Symbol::shape() refers to
  // Sums of many samples are kept in f64: a replica's share must not depend on how large it is.
  Symbol values = ops::cast(given.values, DType::f64);
  const Symbol valid = given.valid ? ops::cast(given.valid, DType::f64) : Symbol();
  if (valid) values = ops::multiply(values, valid);
  Symbol weight;
  if (sample_weight) {
    weight = aligned_weight(ops::cast(sample_weight, DType::f64), values);
    values = ops::multiply(values, weight);
    if (valid) weight = ops::multiply(weight, valid);
  } else {
    weight = valid;
  }

  LossTerm term;
  term.numerator = ops::sum(values);
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  const int64_t rows = shape.empty() ? 1 : shape[0];
  term.weight = weight ? ops::sum(ops::absolute(weight)) : graph.constant(DType::f64, static_cast<double>(rows * elements));

  if (reduction == "sum") {
    term.divisor = graph.constant(DType::f64, 1);
  } else if (reduction == "mean_with_sample_weight" && weight) {
    term.divisor = ops::replica_sum(ops::sum(weight));
  } else if (valid) {
    term.divisor = ops::replica_sum(ops::sum(valid));
  } else {
    term.divisor = graph.constant(DType::f64, static_cast<double>(global_rows * elements));
  }
  return term;
}

}  // namespace lockstep
