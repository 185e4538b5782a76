#include "core/trainer/feed.h"

#include <algorithm>

#include "core/error/error.h"

namespace lockstep {

void bind_variables(ReplicaPart& part, MirroredState& state) {
  const std::vector<Graph::ValueInfo>& values = part.step->graph->values();
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].origin == Graph::Origin::variable) part.variables.push_back({static_cast<int>(v), state.memory(state.index_of(values[v].name)).data()});
  }
}

size_t column_of(const RowSource& source, RowSource::Role role, std::string_view name) {
  const std::vector<RowSource::Column>& columns = source.columns();
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const RowSource::Column& column) { return column.role == role && column.name == name; });
  if (found == columns.end()) throw Error("D17", std::string(name), "the data has no such column");
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace lockstep
