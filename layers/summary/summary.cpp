#include "layers/summary/summary.h"

#include <algorithm>

#include <fmt/format.h>

#include "layers/names/names.h"
#include "layers/shapes.h"

namespace lockstep {

namespace {

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string size_text(int64_t bytes) {
  const std::vector<std::string> units = {"B", "KB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < units.size()) {
    size /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", size, units[unit]);
}

std::string shapes_text(const std::vector<TensorType>& types) {
  if (types.size() == 1) return text_with_none(types.front().shape);
  std::string text = "[";
  for (const TensorType& type : types) text += (text.size() > 1 ? ", " : "") + text_with_none(type.shape);
  return text + "]";
}

}  // namespace

Summary summarize(Model& model, int semantics) {
  const ModelShapes shapes = trace_shapes(model, semantics);
  Summary summary;
  summary.model = model.name;
  std::vector<int> node(model.calls.size(), 0);
  std::vector<int> counts(model.layers.size(), 0);
  for (size_t i = 0; i < model.calls.size(); ++i) node[i] = counts[static_cast<size_t>(model.calls[i].layer)]++;
  const std::vector<WeightName> names = names_of(model, shapes.weights);
  for (const Model::Part& part : model.parts()) {
    SummaryRow& row = summary.rows.emplace_back();
    const auto index = static_cast<size_t>(part.index);
    if (part.is_input) {
      row.name = model.inputs[index].name;
      row.type = "InputLayer";
      row.output_shape = text_with_none(shapes.inputs[index].shape);
      continue;
    }
    const Layer& layer = *model.layers[index];
    row.name = layer.name;
    row.type = class_name_of(layer);
    row.output_shape = shapes_text(shapes.calls.at(layer.name).front());
    for (const WeightName& name : names) {
      if (name.top_layer == layer.name) row.parameters += name.weight->variable.type.elements();
    }
    for (const Model::Call& call : model.calls) {
      if (call.layer != part.index) continue;
      for (const Model::Reference& from : call.inputs) {
        if (from.call < 0) {
          row.connected_to.push_back(fmt::format("{}[0][0]", model.inputs[static_cast<size_t>(from.index)].name));
        } else {
          const Model::Call& source = model.calls[static_cast<size_t>(from.call)];
          row.connected_to.push_back(fmt::format("{}[{}][{}]", model.layers[static_cast<size_t>(source.layer)]->name, node[static_cast<size_t>(from.call)], from.index));
        }
      }
    }
  }
  for (const Weight& weight : shapes.weights.all()) {
    const Variable& variable = weight.variable;
    (variable.trainable ? summary.trainable : summary.not_trainable) += variable.type.elements();
    (variable.trainable ? summary.trainable_bytes : summary.not_trainable_bytes) += static_cast<int64_t>(variable.type.bytes());
  }
  return summary;
}

std::string Summary::text() const {
  std::vector<std::vector<std::string>> lines = {{"Layer (type)", "Output Shape", "Param #", "Connected to"}};
  for (const SummaryRow& row : rows) {
    lines.push_back({fmt::format("{} ({})", printable(row.name), row.type), row.output_shape, with_commas(row.parameters), row.connected_to.empty() ? "-" : printable(fmt::format("{}", fmt::join(row.connected_to, ", ")))});
  }
  std::vector<size_t> widths(4, 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text = fmt::format("Model: \"{}\"\n", printable(model));
  for (const auto& line : lines) {
    text += fmt::format("{:<{}}  {:<{}}  {:>{}}  {}\n", line[0], widths[0], line[1], widths[1], line[2], widths[2], line[3]);
    if (&line == &lines.front()) text += std::string(widths[0] + widths[1] + widths[2] + widths[3] + 6, '-') + "\n";
  }
  text += fmt::format("Total params: {} ({})\n", with_commas(trainable + not_trainable), size_text(trainable_bytes + not_trainable_bytes));
  text += fmt::format("Trainable params: {} ({})\n", with_commas(trainable), size_text(trainable_bytes));
  text += fmt::format("Non-trainable params: {} ({})\n", with_commas(not_trainable), size_text(not_trainable_bytes));
  return text;
}

}  // namespace lockstep
