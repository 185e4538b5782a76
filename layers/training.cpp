#include "layers/training.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error/error.h"
#include "core/ops/ops.h"

namespace lockstep {

namespace {

const RowSource::Column* find_column(const std::vector<RowSource::Column>& columns, RowSource::Role role, std::string_view name) {
  const auto found = std::ranges::find_if(columns, [&](const RowSource::Column& column) { return column.role == role && column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

/// Losses and metrics are computed in float32, as Keras does; float64 stays as it is.
Symbol widened(Symbol x) { return x.dtype() == DType::f64 ? x : ops::cast(x, DType::f32); }

/// One trace of a model's step.
class Tracer {
 public:
  Tracer(const TracedModel& model, WeightList& weights, const StepShape& shape, const std::vector<RowSource::Column>& columns, bool training)
      : model_(model), weights_(weights), shape_(shape), columns_(columns), training_(training), graph_(std::make_unique<Graph>()) {}

  std::vector<Symbol> forward(std::function<void(const std::string&, std::span<const Symbol>)> observe = {}) {
    LayerContext::Settings settings;
    settings.training = training_;
    settings.semantics = model_.semantics;
    settings.global_rows = shape_.global_rows;
    settings.rows = shape_.rows;
    settings.dtype_policy = model_.dtype_policy;
    settings.observe = std::move(observe);
    context_ = std::make_unique<LayerContext>(*graph_, weights_, std::move(settings));

    std::vector<Symbol> inputs;
    for (const TracedModel::Input& input : model_.inputs) {
      const RowSource::Column* column = find_column(columns_, RowSource::Role::input, input.name);
      const TensorType row = column ? column->row : input.row;
      if (row.shape != input.row.shape) {
        throw Error("D12", "", fmt::format("samples of input '{}' are {}, the model takes {}", input.name, text_of(row.shape), text_of(input.row.shape)));
      }
      inputs.push_back(ops::cast(add_input(RowSource::Role::input, input.name, row), input.row.dtype));
    }
    std::vector<Symbol> outputs = model_.call(*context_, inputs);
    if (outputs.size() != model_.outputs.size()) throw Error("X05", "", fmt::format("the model gives {} outputs and names {}", outputs.size(), model_.outputs.size()));
    return outputs;
  }

  Symbol add_input(RowSource::Role role, const std::string& name, const TensorType& row) {
    const auto known = std::ranges::find_if(step_.inputs, [&](const TracedStep::Input& input) { return input.role == role && input.name == name; });
    if (known != step_.inputs.end()) return known->value;
    TensorType type = row;
    type.shape.insert(type.shape.begin(), shape_.rows);
    static constexpr std::string_view kinds[] = {"input", "target", "sample_weight"};
    const Symbol value = graph_->input(fmt::format("{}/{}", kinds[static_cast<size_t>(role)], name), type);
    step_.inputs.push_back({role, name, value});
    return value;
  }

  /// Losses, metrics and their reports; gives the total loss, f64: this replica's share.
  Symbol add_losses(const TrainingSpec& spec, const std::vector<Symbol>& outputs) {
    if (spec.outputs.size() != outputs.size()) throw Error("Y37", "", fmt::format("the model has {} outputs, {} losses are given; use null for an output without a loss", outputs.size(), spec.outputs.size()));
    const auto with_loss = std::ranges::count_if(spec.outputs, [](const TrainingSpec::Output& output) { return output.loss != nullptr; });
    if (with_loss == 0) throw Error("Y37", "", "no output has a loss");
    Symbol total, valid;
    std::vector<std::pair<std::string, Symbol>> by_output;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const TrainingSpec::Output& output = spec.outputs[i];
      if (!output.loss) continue;
      const Symbol target = target_of(model_.outputs[i], "has a loss");
      const LossTerm term = told(i, [&] { return reduce_weighted(output.loss->values(target, widened(outputs[i])), sample_weight(spec, i, target), output.loss->reduction, shape_.global_rows); });
      const Symbol share = ops::divide_no_nan(term.numerator, term.divisor);
      const Symbol weighted = output.loss_weight == 1 ? share : ops::multiply(share, output.loss_weight);
      total = total ? ops::add(total, weighted) : weighted;
      valid = valid ? ops::add(valid, term.weight) : term.weight;
      by_output.emplace_back(model_.outputs[i] + "_loss", share);
    }
    total = add_regularisation(total);
    report_loss("loss", total);
    if (with_loss > 1) {
      for (const auto& [name, share] : by_output) report_loss(name, share);
    }
    add_metrics(spec, outputs);
    if (training_) step_.reports.push_back({"valid", ops::reshape(valid, {1})});
    return total;
  }

  void add_gradients(Symbol loss) {
    std::vector<const Weight*> trainable;
    std::vector<Symbol> variables;
    for (const Weight& weight : weights_.all()) {
      if (!weight.variable.trainable) continue;
      trainable.push_back(&weight);
      variables.push_back(graph_->variable(weight.variable));
    }
    const Symbol one = graph_->constant(DType::f64, 1);
    const std::vector<Symbol> gradients = differentiate({&loss, 1}, {&one, 1}, variables);
    for (size_t i = 0; i < trainable.size(); ++i) {
      if (gradients[i]) step_.gradients.push_back({trainable[i]->variable.path, gradients[i]});
    }
    const auto made = [&](const TracedStep::Gradient& gradient) { return graph_->value(gradient.value.id()).node; };
    std::ranges::stable_sort(step_.gradients, {}, made);
    for (const LayerContext::Update& update : context_->updates()) step_.updates.push_back({update.variable, update.value});
  }

  void add_output(std::string name, Symbol value) { step_.outputs.push_back({std::move(name), value}); }

  TracedStep take() {
    step_.graph = std::move(graph_);
    return std::move(step_);
  }
  TracedTraining take_training() {
    std::vector<LoggedNumber> numbers = std::move(numbers_);
    return {take(), std::move(numbers)};
  }

 private:
  /// What is thrown for an output's loss or metric names the output.
  template <class Step>
  auto told(size_t output, Step step) -> decltype(step()) {
    try {
      return step();
    } catch (const Error& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) problem.message = fmt::format("output '{}': {}", model_.outputs[output], problem.message);
      throw Error(std::move(problems));
    }
  }

  Symbol target_of(const std::string& output, std::string_view why) {
    const RowSource::Column* column = find_column(columns_, RowSource::Role::target, output);
    if (!column) {
      std::vector<std::string> targets;
      for (const RowSource::Column& c : columns_) {
        if (c.role == RowSource::Role::target) targets.push_back(c.name);
      }
      throw Error("D16", "", fmt::format("output '{}' {}, but the data has no target of that name{}; its targets: {}", output, why, did_you_mean(output, targets), targets.empty() ? "none" : fmt::format("{}", fmt::join(targets, ", "))));
    }
    return add_input(RowSource::Role::target, output, column->row);
  }

  /// The data's weight for the output, or by the target's class, or invalid.
  Symbol sample_weight(const TrainingSpec& spec, size_t output, Symbol target) {
    const RowSource::Column* column = find_column(columns_, RowSource::Role::sample_weight, model_.outputs[output]);
    if (!column) column = find_column(columns_, RowSource::Role::sample_weight, "");
    const bool by_class = training_ && !spec.class_weight.empty();
    if (column && by_class) throw Error("Y13", "", "train.class_weight and a sample_weight in the data can't go together; leave out one");
    if (column) return add_input(RowSource::Role::sample_weight, column->name, column->row);
    if (!by_class) return {};
    if (model_.outputs.size() > 1) throw Error("Y13", "", fmt::format("train.class_weight is for models with one output; this one has {}", model_.outputs.size()));

    Symbol labels = target;
    if (labels.shape().size() > 1) labels = labels.last() == 1 ? ops::squeeze(labels, -1) : ops::argmax(labels);
    // Rounded as Keras does, but for halves.
    if (is_floating(labels.dtype())) labels = ops::floor(ops::add(labels, 0.5));
    labels = ops::cast(labels, DType::i64);
    Symbol weight = graph_->constant(DType::f32, 1, labels.shape());
    for (const auto& [label, value] : spec.class_weight) {
      const Symbol is_label = ops::equal(labels, graph_->constant(DType::i64, static_cast<double>(label)));
      weight = ops::where(is_label, graph_->constant(DType::f32, value), weight);
    }
    return weight;
  }

  /// Losses of weights once, not per replica: replica 0 adds them. Losses of activities are each replica's share already.
  Symbol add_regularisation(Symbol total) {
    Symbol of_weights;
    for (const Weight& weight : weights_.all()) {
      if (!weight.regularizer || !weight.variable.trainable) continue;
      const Symbol loss = ops::cast(weight.regularizer->loss(graph_->variable(weight.variable)), DType::f64);
      of_weights = of_weights ? ops::add(of_weights, loss) : loss;
    }
    if (of_weights) {
      const Symbol first = ops::cast(ops::equal(graph_->replica_index(), graph_->constant(DType::i32, 0)), DType::f64);
      total = ops::add(total, ops::multiply(of_weights, first));
    }
    for (const Symbol loss : context_->losses()) total = ops::add(total, ops::cast(loss, DType::f64));
    return total;
  }

  void report_loss(const std::string& name, Symbol share) {
    Symbol value = ops::reshape(share, {1});
    if (!training_) {
      const auto rows = static_cast<double>(shape_.rows);
      value = ops::concatenate({ops::multiply(value, rows), graph_->constant(DType::f64, rows, {1})}, 0);
    }
    step_.reports.push_back({name, value});
    numbers_.push_back({name, nullptr});
  }

  /// Named as Keras does: the output's name in front where there are several, numbered or marked as weighted where a name comes again.
  void add_metrics(const TrainingSpec& spec, const std::vector<Symbol>& outputs) {
    std::map<std::string, int> seen;
    for (const bool weighted : {false, true}) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string prefix = outputs.size() > 1 ? model_.outputs[i] + "_" : "";
        for (const Value& identifier : weighted ? spec.outputs[i].weighted_metrics : spec.outputs[i].metrics) {
          const Symbol target = target_of(model_.outputs[i], "has a metric");
          const Symbol prediction = widened(outputs[i]);
          const auto metric = make_metric(identifier, target.shape(), prediction.shape());
          std::string name = prefix + metric->name;
          if (weighted && seen.contains(name)) name = fmt::format("{}weighted_{}", prefix, metric->name);
          const int before = seen[name]++;
          if (before > 0) name = fmt::format("{}_{}", name, before);
          const Symbol state = told(i, [&] { return metric->state(target, prediction, weighted ? sample_weight(spec, i, target) : Symbol()); });
          step_.reports.push_back({name, state});
          numbers_.push_back({name, metric});
        }
      }
    }
  }

  const TracedModel& model_;
  WeightList& weights_;
  StepShape shape_;
  const std::vector<RowSource::Column>& columns_;
  bool training_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<LayerContext> context_;
  TracedStep step_;
  std::vector<LoggedNumber> numbers_;
};

/// `name`, then `name_1`, ...
std::string numbered(const std::string& name, size_t index) { return index == 0 ? name : fmt::format("{}_{}", name, index); }

}  // namespace

double LoggedNumber::value(std::span<const double> sums) const {
  if (metric) return metric->result(sums);
  if (sums.size() == 1) return sums[0];
  return sums[1] == 0 ? 0 : sums[0] / sums[1];
}

TracedTraining trace_training(const TracedModel& model, const TrainingSpec& training, WeightList& weights, const StepShape& shape) {
  Tracer tracer(model, weights, shape, training.columns, true);
  const std::vector<Symbol> outputs = tracer.forward();
  tracer.add_gradients(tracer.add_losses(training, outputs));
  return tracer.take_training();
}

TracedTraining trace_evaluation(const TracedModel& model, const TrainingSpec& training, WeightList& weights, const StepShape& shape) {
  Tracer tracer(model, weights, shape, training.columns, false);
  const std::vector<Symbol> outputs = tracer.forward();
  tracer.add_losses(training, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) tracer.add_output(model.outputs[i], outputs[i]);
  return tracer.take_training();
}

TracedStep trace_forward(const TracedModel& model, WeightList& weights, const StepShape& shape, const ForwardOptions& options) {
  Tracer tracer(model, weights, shape, options.columns, false);
  std::map<std::string, std::vector<Symbol>> observed;
  const std::vector<Symbol> outputs = tracer.forward([&](const std::string& path, std::span<const Symbol> symbols) { observed.try_emplace(path, symbols.begin(), symbols.end()); });

  std::vector<std::pair<std::string, Symbol>> given;
  for (size_t i = 0; options.layers.empty() && i < outputs.size(); ++i) given.emplace_back(model.outputs[i], outputs[i]);
  for (const std::string& layer : options.layers) {
    const auto found = observed.find(layer);
    if (found == observed.end()) {
      std::vector<std::string> known;
      for (const auto& [path, symbols] : observed) known.push_back(path);
      std::string hint = did_you_mean(layer, known);
      if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known, ", "));
      throw Error("M14", "", fmt::format("the model has no layer '{}'{}", printable(layer), hint));
    }
    for (size_t i = 0; i < found->second.size(); ++i) given.emplace_back(numbered(layer, i), found->second[i]);
  }
  for (const auto& [name, value] : given) tracer.add_output(name, options.probes ? ops::liveness_probe(value, name) : value);
  return tracer.take();
}

}  // namespace lockstep
