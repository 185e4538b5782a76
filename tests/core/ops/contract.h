#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/core/ops/evaluate.h"

/// What every op must keep, held against a table with a row an op.
namespace lockstep {

struct Argument {
  Shape shape;
  double low = -1;
  double high = 1;
  bool rows = false;             ///< the first axis counts rows: 0 of them must work
  std::optional<DType> dtype{};  ///< integers and conditions keep theirs, and have no gradient
};

struct Row {
  std::string name;
  std::vector<Argument> arguments;
  std::function<Symbol(const std::vector<Symbol>&)> build;
  double tolerance = 1;  ///< times that of the dtype, where an op adds many values or is steep
};

/// A row's graph for one dtype: the result, and the gradient of sum(result * weights) for each argument that has one.
struct Built {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<Symbol> arguments;
  Symbol result;
  Symbol loss;  ///< sum(result * weights), where the result has gradients
  std::vector<Symbol> gradients;
};

inline bool has_gradient(const Argument& argument) { return !argument.dtype; }
inline std::string argument_name(size_t i) { return "argument" + std::to_string(i); }

inline Built build(const Row& row, DType dtype, bool no_rows = false) {
  Built built;
  std::vector<Symbol> differentiated;
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Argument& argument = row.arguments[i];
    Shape shape = argument.shape;
    if (no_rows && argument.rows) shape[0] = 0;
    built.arguments.push_back(built.graph->input(argument_name(i), {argument.dtype.value_or(dtype), shape}));
    if (has_gradient(argument)) differentiated.push_back(built.arguments.back());
  }
  built.result = row.build(built.arguments);
  if (!is_floating(built.result.dtype())) return built;
  const Symbol weights = built.graph->constant(cast(random_tensor({DType::f64, built.result.shape()}, 99), built.result.dtype()));
  built.loss = ops::sum(ops::multiply(built.result, weights));
  const Symbol one = built.graph->constant(built.result.dtype(), 1);
  built.gradients = differentiate({&built.loss, 1}, {&one, 1}, differentiated);
  return built;
}

/// Random values for the arguments, the same for every dtype up to rounding.
inline std::map<std::string, Tensor> feeds_of(const Row& row, DType dtype, bool no_rows = false) {
  std::map<std::string, Tensor> feeds;
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Argument& argument = row.arguments[i];
    Shape shape = argument.shape;
    if (no_rows && argument.rows) shape[0] = 0;
    feeds[argument_name(i)] = random_tensor({argument.dtype.value_or(dtype), shape}, static_cast<uint32_t>(i) + 1, argument.low, argument.high);
  }
  return feeds;
}

/// The result, then the gradients that exist.
inline std::vector<Symbol> wanted_of(const Built& built) {
  std::vector<Symbol> wanted = {built.result};
  for (const Symbol& gradient : built.gradients) {
    if (gradient) wanted.push_back(gradient);
  }
  return wanted;
}

}  // namespace lockstep
