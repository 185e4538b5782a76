#include "core/graph/graph.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/graph/op.h"

namespace lockstep {

const TensorType& Symbol::type() const { return graph_->value(id_).type; }

std::vector<Symbol> Op::gradient(const NodeView& node, std::span<const Symbol>) const { return std::vector<Symbol>(node.inputs.size()); }
bool Op::may_overwrite(size_t) const { return false; }

Symbol Graph::add_value(ValueInfo info) {
  values_.push_back(std::move(info));
  return {this, static_cast<int>(values_.size()) - 1};
}

Symbol Graph::input(std::string name, TensorType type) {
  ValueInfo info;
  info.type = std::move(type);
  info.origin = Origin::input;
  info.name = std::move(name);
  return add_value(std::move(info));
}

Symbol Graph::variable(const Variable& variable) {
  const auto same = [&](const ValueInfo& info) { return info.origin == Origin::variable && info.name == variable.path; };
  const auto found = std::find_if(values_.begin(), values_.end(), same);
  if (found != values_.end()) return {this, static_cast<int>(found - values_.begin())};
  ValueInfo info;
  info.type = variable.type;
  info.origin = Origin::variable;
  info.name = variable.path;
  return add_value(std::move(info));
}

Symbol Graph::constant(Tensor tensor) {
  ValueInfo info;
  info.type = tensor.type();
  info.origin = Origin::constant;
  info.constant = std::move(tensor);
  return add_value(std::move(info));
}

Symbol Graph::constant(DType dtype, double value, Shape shape) {
  Tensor wide({DType::f64, std::move(shape)});
  std::ranges::fill(wide.as<double>(), value);
  return constant(cast(wide, dtype));
}

Symbol Graph::replica_index() {
  if (replica_index_ < 0) {
    ValueInfo info;
    info.type = {DType::i32, {}};
    info.origin = Origin::replica_index;
    replica_index_ = add_value(std::move(info)).id();
  }
  return {this, replica_index_};
}

std::vector<Symbol> Graph::add(std::shared_ptr<const Op> op, std::span<const Symbol> inputs) {
  Node node;
  std::vector<TensorType> types;
  for (const Symbol& input : inputs) {
    if (!input.valid() || &input.graph() != this) throw Error("X02", layer_, fmt::format("{}: an argument is of another graph", op->name()));
    node.inputs.push_back(input.id());
    types.push_back(input.type());
  }
  std::vector<TensorType> results;
  try {
    results = op->infer(types);
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (problem.place.empty()) problem.place = layer_;
    }
    throw Error(std::move(problems));
  }
  std::vector<Symbol> outputs;
  for (TensorType& type : results) {
    ValueInfo info;
    info.type = std::move(type);
    info.node = static_cast<int>(nodes_.size());
    outputs.push_back(add_value(std::move(info)));
    node.outputs.push_back(outputs.back().id());
  }
  node.op = std::move(op);
  node.layer = layer_;
  nodes_.push_back(std::move(node));
  return outputs;
}

std::string Graph::set_layer(std::string path) { return std::exchange(layer_, std::move(path)); }

}  // namespace lockstep
