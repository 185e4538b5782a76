#include "layers/metrics/metric.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "layers/identifier.h"
#include "layers/losses/loss.h"

namespace lockstep {

// Defined in make_metric.h, made in each metric's own file.
template <class T>
std::shared_ptr<Metric> make_metric();

namespace metrics {

using Made = std::shared_ptr<Metric>;

// Every metric: its class in Keras, its other names. One line a metric; `class X` also declares it.
static const NamedMaker<Made> list[] = {
    {{"Accuracy"}, make_metric<class Accuracy>},
    {{"BinaryAccuracy", "binary_accuracy"}, make_metric<class BinaryAccuracy>},
    {{"BinaryCrossentropy", "binary_crossentropy", "bce", "BCE"}, make_metric<class BinaryCrossentropy>},
    {{"CategoricalAccuracy", "categorical_accuracy"}, make_metric<class CategoricalAccuracy>},
    {{"CategoricalCrossentropy", "categorical_crossentropy"}, make_metric<class CategoricalCrossentropy>},
    {{"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"}, make_metric<class MeanAbsoluteError>},
    {{"MeanSquaredError", "mean_squared_error", "mse", "MSE"}, make_metric<class MeanSquaredError>},
    {{"RootMeanSquaredError", "root_mean_squared_error", "rmse", "RMSE"}, make_metric<class RootMeanSquaredError>},
    {{"SparseCategoricalAccuracy", "sparse_categorical_accuracy"}, make_metric<class SparseCategoricalAccuracy>},
    {{"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"}, make_metric<class SparseCategoricalCrossentropy>},
};

}  // namespace metrics

void Metric::base_fields(Fields& fields) {
  fields.add("name", name, "name of the metric in logs");
  fields.ignore("dtype");  // Keras's, of the state; here that is float64
}

Symbol Metric::state(Symbol y_true, Symbol y_pred, Symbol sample_weight) const {
  Symbol samples = ops::cast(values(y_true, y_pred), DType::f64);
  Symbol weight;
  if (sample_weight) {
    weight = aligned_weight(ops::cast(sample_weight, DType::f64), samples);
    weight = ops::broadcast_to(weight, samples.shape());
    samples = ops::multiply(samples, weight);
  }
  std::vector<int64_t> places;
  for (size_t i = 1; i < samples.shape().size(); ++i) places.push_back(static_cast<int64_t>(i));
  if (!places.empty()) {
    samples = ops::mean(samples, places);
    if (weight) weight = ops::mean(weight, places);
  }
  const Symbol sum = ops::sum(samples, {0}, true);
  const Symbol count = weight ? ops::sum(weight, {0}, true) : samples.graph().constant(DType::f64, static_cast<double>(samples.shape()[0]), {1});
  return ops::concatenate({sum, count}, 0);
}

double Metric::result(std::span<const double> state) const { return state[1] == 0 ? 0 : state[0] / state[1]; }

std::shared_ptr<const Metric> make_metric(const Value& value, const Shape& y_true, const Shape& y_pred) {
  const Identifier given = read_identifier(value, "metric");
  Identifier identifier = given;
  std::string lower = given.name;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (given.bare && (lower == "accuracy" || lower == "acc")) {
    const bool binary = !y_pred.empty() && y_pred.back() == 1;
    const bool sparse = y_true.size() < y_pred.size() || (!y_true.empty() && y_true.back() == 1);
    identifier.name = binary ? "BinaryAccuracy" : sparse ? "SparseCategoricalAccuracy"
                                                         : "CategoricalAccuracy";
  }
  const metrics::Made metric = make_named<metrics::Made>(metrics::list, identifier, "metric");
  Fields fields;
  metric->base_fields(fields);
  metric->fields(fields);
  read_fields(identifier.config, fields, identifier.name);
  if (given.bare) metric->name = given.name;
  return metric;
}

Value to_keras(const Metric& metric) {
  Fields fields;
  const_cast<Metric&>(metric).base_fields(fields);  // only reads
  const_cast<Metric&>(metric).fields(fields);
  return keras_class_config("keras.metrics", metric.type(), write_fields(fields));
}

std::vector<std::string> metric_types() {
  std::vector<std::string> types;
  for (const auto& entry : metrics::list) types.emplace_back(entry.names.front());
  return types;
}

}  // namespace lockstep
