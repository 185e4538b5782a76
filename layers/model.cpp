#include "layers/model.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "layers/custom/custom_layer.h"

namespace lockstep {

void LayerRegistry::add(std::string type, Make make) { makes_.insert_or_assign(std::move(type), std::move(make)); }

const LayerRegistry::Make* LayerRegistry::find(std::string_view type) const {
  const auto found = makes_.find(type);
  return found == makes_.end() ? nullptr : &found->second;
}

std::vector<std::string> LayerRegistry::types() const {
  std::vector<std::string> result;
  for (const auto& [type, make] : makes_) result.push_back(type);
  return result;
}

Model* inner_model(Layer& layer) {
  if (auto* model = dynamic_cast<Model*>(&layer)) return model;
  if (auto* custom = dynamic_cast<CustomLayer*>(&layer)) return &custom->inner();
  return nullptr;
}

const Model* inner_model(const Layer& layer) { return inner_model(const_cast<Layer&>(layer)); }

namespace {

/// What a layer threw, with its path and the shapes that led to it: told once, by the innermost model.
class TracedError : public Error {
 public:
  using Error::Error;
};

std::string join_names(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

/// "(None, 28, 28)": the first axis of a traced tensor counts a replica's rows.
std::string rows_apart(const Shape& shape, int64_t rows) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", i == 0 && shape[i] == rows ? "None" : std::to_string(shape[i]));
  return text + ")";
}

const std::string& name_of_call(const Model& model, const Model::Call& call) {
  return call.name.empty() ? model.layers[static_cast<size_t>(call.layer)]->name : call.name;
}

}  // namespace

std::vector<Symbol> Model::call(LayerContext& context, std::span<const Symbol> given) {
  if (given.size() != inputs.size()) {
    throw Error("M23", "", fmt::format("model '{}' has {} inputs and is called with {}", context.path().empty() ? name : context.path(), inputs.size(), given.size()));
  }
  std::vector<std::vector<Symbol>> results(calls.size());
  const auto symbol = [&](const Reference& from) -> const Symbol& {
    return from.call < 0 ? given[static_cast<size_t>(from.index)] : results[static_cast<size_t>(from.call)][static_cast<size_t>(from.index)];
  };
  const auto shapes_before = [&](size_t count) {
    constexpr size_t told = 6;
    std::string text;
    for (size_t i = 0; i < inputs.size(); ++i) text += fmt::format("{}{} {}", i == 0 ? "" : ", ", inputs[i].name, rows_apart(given[i].shape(), context.settings().rows));
    if (count > told) text += " -> ...";
    for (size_t i = count > told ? count - told : 0; i < count; ++i) {
      text += fmt::format(" -> {}", name_of_call(*this, calls[i]));
      for (const Symbol& y : results[i]) text += " " + rows_apart(y.shape(), context.settings().rows);
    }
    return text;
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    Layer& layer = *layers[static_cast<size_t>(call.layer)];
    const std::string path = join_names(context.path(), layer.name);
    std::vector<Symbol> arguments;
    for (const Reference& from : call.inputs) {
      const size_t available = from.call < 0 ? given.size() : results[static_cast<size_t>(from.call)].size();
      if (static_cast<size_t>(from.index) >= available) {
        const std::string& owner = name_of_call(*this, calls[static_cast<size_t>(from.call)]);
        fail_at(call.place, source == Source::job ? "Y31" : "M23", fmt::format("layer '{}' reads output {} of layer '{}', which gives {}", path, from.index, owner, available));
      }
      arguments.push_back(symbol(from));
    }
    const bool before = call.training ? context.set_training(*call.training) : context.training();
    try {
      results[i] = context.call(layer, arguments);
    } catch (const TracedError&) {
      throw;
    } catch (const Error& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) {
        // Layers know their path, not where they are described: the path belongs to the message.
        std::string who = path;
        const bool told_by_path = problem.place.empty() || problem.place == path || problem.place.starts_with(path + "/");
        if (told_by_path) {
          if (!problem.place.empty()) who = problem.place;
          problem.place = call.place.text();
          problem.excerpt = call.place.excerpt();
        }
        if (source == Source::job && problem.code.starts_with("M")) problem.code = "Y32";
        problem.message = fmt::format("layer '{}' ({}): {}\n  shapes up to it: {}", who, layer.type(), problem.message, shapes_before(i));
      }
      throw TracedError(std::move(problems));
    }
    context.set_training(before);
    if (context.settings().observe && !call.name.empty()) context.settings().observe(join_names(context.path(), call.name), results[i]);
  }
  std::vector<Symbol> results_out;
  for (const Output& output : outputs) {
    const size_t available = output.from.call < 0 ? given.size() : results[static_cast<size_t>(output.from.call)].size();
    if (static_cast<size_t>(output.from.index) >= available) {
      throw Error(source == Source::job ? "Y31" : "M23", "", fmt::format("output '{}' is number {} of layer '{}', which gives {}", output.key, output.from.index, name_of_call(*this, calls[static_cast<size_t>(output.from.call)]), available));
    }
    results_out.push_back(symbol(output.from));
  }
  return results_out;
}

std::vector<std::string> keras_output_names(const Model& model) {
  std::vector<std::string> result;
  std::map<std::string, int> seen;
  for (const Model::Output& output : model.outputs) {
    const std::string& name = output.from.call < 0 ? model.inputs[static_cast<size_t>(output.from.index)].name
                                                   : model.layers[static_cast<size_t>(model.calls[static_cast<size_t>(output.from.call)].layer)]->name;
    const int count = seen[name]++;
    result.push_back(count == 0 ? name : fmt::format("{}_{}", name, count));
  }
  return result;
}

std::string snake_case(std::string_view class_name) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string word;
  for (char c : class_name) {
    if (upper(c) || lower(c) || (c >= '0' && c <= '9') || c == '_') word += c;
  }
  // Keras's two passes: (.)([A-Z][a-z]+) -> \1_\2, which does not overlap, then ([a-z])([A-Z]) -> \1_\2.
  std::string first;
  for (size_t i = 0; i < word.size();) {
    first += word[i];
    if (i + 2 < word.size() && upper(word[i + 1]) && lower(word[i + 2])) {
      first += '_';
      first += word[++i];
      while (i + 1 < word.size() && lower(word[i + 1])) first += word[++i];
    }
    ++i;
  }
  std::string result;
  for (size_t i = 0; i < first.size(); ++i) {
    if (i > 0 && upper(first[i]) && lower(first[i - 1])) result += '_';
    result += static_cast<char>(upper(first[i]) ? first[i] - 'A' + 'a' : first[i]);
  }
  return result;
}

namespace {

/// The layer of a model that a borrowed path names, or -1: the longest name that the path continues.
int owner_of(const Model& model, std::string_view borrowed) {
  int best = -1;
  size_t length = 0;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const std::string& name = model.layers[i]->name;
    if (borrowed.starts_with(name + "/") && name.size() >= length) {
      best = static_cast<int>(i);
      length = name.size();
    }
  }
  return best;
}

}  // namespace

std::vector<std::string> borrowed_weights(const Layer& layer) {
  std::vector<std::string> result;
  if (layer.borrow.is_map()) {
    for (const auto& [key, path] : layer.borrow.as_map()) {
      if (path.is_string()) result.push_back(path.as_string());
    }
  }
  if (const Model* inner = inner_model(layer)) {
    for (const auto& part : inner->layers) {
      for (std::string& path : borrowed_weights(*part)) {
        if (owner_of(*inner, path) < 0) result.push_back(std::move(path));
      }
    }
  }
  return result;
}

namespace {

void collect_paths(const Model& model, const std::string& outer, std::map<std::string, int>& paths) {
  for (const auto& layer : model.layers) {
    const std::string path = join_names(outer, layer->name);
    ++paths[path];
    if (const Model* inner = inner_model(*layer)) collect_paths(*inner, path, paths);
  }
}

}  // namespace

void check_whole(const Model& model) {
  Problems problems;
  std::map<std::string, int> paths;
  collect_paths(model, "", paths);
  for (const auto& [path, count] : paths) {
    if (count > 1) problems.add({model.source == Model::Source::job ? "Y29" : "M23", "", fmt::format("{} layers have the path '{}' once the names of the models around them are added; rename one", count, path), ""});
  }
  std::vector<std::string> names;
  for (const auto& layer : model.layers) names.push_back(layer->name);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    for (const std::string& path : borrowed_weights(*model.layers[i])) {
      if (owner_of(model, path) >= 0) continue;
      const std::string owner = path.substr(0, path.find('/'));
      std::string hint = did_you_mean(owner, names);
      if (hint.empty()) hint = fmt::format("; layers: {}", fmt::join(names, ", "));
      const std::string text = path.find('/') == std::string::npos ? fmt::format("'{}' does not name a layer's weight (layer/weight)", path) : fmt::format("there is no layer '{}'{}", owner, hint);
      const auto call = std::find_if(model.calls.begin(), model.calls.end(), [&](const Model::Call& c) { return c.layer == static_cast<int>(i); });
      const Place& own = model.layers[i]->borrow.place();
      const Place& place = own.source || call == model.calls.end() ? own : call->place;
      problems.add(problem_at(place, model.source == Model::Source::job ? "Y36" : "M23", fmt::format("layer '{}' borrows '{}': {}", model.layers[i]->name, path, text)));
    }
  }
  problems.raise();
}

namespace {

/// A node of Keras's graph: a call (0, 1, ...) or an Input layer (after the calls). An operation: a layer (0, 1, ...) or an Input layer (after the layers).
struct NodeGraph {
  explicit NodeGraph(const Model& model) : model(model) {}

  const Model& model;
  int node_of(const Model::Reference& from) const { return from.call >= 0 ? from.call : static_cast<int>(model.calls.size()) + from.index; }
  int operation_of(int node) const {
    const int calls = static_cast<int>(model.calls.size());
    return node < calls ? model.calls[static_cast<size_t>(node)].layer : static_cast<int>(model.layers.size()) + node - calls;
  }
  std::vector<int> parents(int node) const {
    std::vector<int> result;
    if (node < static_cast<int>(model.calls.size())) {
      for (const Model::Reference& from : model.calls[static_cast<size_t>(node)].inputs) result.push_back(node_of(from));
    }
    return result;
  }
};

/// Keras's walk (keras/src/ops/function.py, map_graph): nodes from inputs to outputs, and when each operation was first met.
struct Walk {
  explicit Walk(const Model& model) : graph(model), state(model.calls.size() + model.inputs.size(), 0), met(model.layers.size() + model.inputs.size(), -1) {
    std::vector<const Model::Output*> flat;
    for (const Model::Output& output : model.outputs) flat.push_back(&output);
    // Keras flattens a mapping of outputs by its sorted keys.
    if (model.dict_outputs) std::stable_sort(flat.begin(), flat.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
    for (const Model::Output* output : flat) visit(graph.node_of(output->from));
  }

  void visit(int start) {
    // An explicit stack: a file may describe a chain of any length.
    std::vector<std::pair<int, size_t>> stack;
    const auto enter = [&](int node) {
      if (state[static_cast<size_t>(node)] == 2) return;
      if (state[static_cast<size_t>(node)] == 1) fail_with_cycle(stack, node);
      state[static_cast<size_t>(node)] = 1;
      int& first = met[static_cast<size_t>(graph.operation_of(node))];
      if (first < 0) first = count++;
      stack.emplace_back(node, 0);
    };
    enter(start);
    while (!stack.empty()) {
      const int node = stack.back().first;
      const std::vector<int> parents = graph.parents(node);
      if (stack.back().second < parents.size()) {
        enter(parents[stack.back().second++]);
        continue;
      }
      state[static_cast<size_t>(node)] = 2;
      nodes.push_back(node);
      stack.pop_back();
    }
  }

  [[noreturn]] void fail_with_cycle(const std::vector<std::pair<int, size_t>>& stack, int node) const {
    const auto begin = std::find_if(stack.begin(), stack.end(), [&](const auto& entry) { return entry.first == node; });
    std::string text;
    for (auto entry = stack.rbegin(); entry.base() != begin; ++entry) text += fmt::format("{} -> ", name_of_call(graph.model, graph.model.calls[static_cast<size_t>(entry->first)]));
    const Model::Call& call = graph.model.calls[static_cast<size_t>(stack.back().first)];
    text += name_of_call(graph.model, graph.model.calls[static_cast<size_t>(stack.back().first)]);
    fail_at(call.place, graph.model.source == Model::Source::job ? "Y31" : "M23", fmt::format("cycle: {}", text));
  }

  NodeGraph graph;
  std::vector<int> state;
  std::vector<int> met;    ///< by operation; -1: never
  std::vector<int> nodes;  ///< inputs first
  int count = 0;
};

/// The depth of each operation, and all of them in Keras's order.
std::vector<int> keras_order(const Model& model, const Walk& walk) {
  std::vector<int> node_depth(walk.state.size(), 0);
  std::vector<int> depth(walk.met.size(), 0);
  for (auto node = walk.nodes.rbegin(); node != walk.nodes.rend(); ++node) {
    int& own = depth[static_cast<size_t>(walk.graph.operation_of(*node))];
    own = std::max(own, node_depth[static_cast<size_t>(*node)]);
    node_depth[static_cast<size_t>(*node)] = own;
    for (int parent : walk.graph.parents(*node)) node_depth[static_cast<size_t>(parent)] = std::max(node_depth[static_cast<size_t>(parent)], own + 1);
  }
  std::vector<int> operations;
  for (size_t i = 0; i < walk.met.size(); ++i) {
    // Input layers that no output needs are kept, in front of the others of depth 0.
    if (walk.met[i] >= 0 || i >= model.layers.size()) operations.push_back(static_cast<int>(i));
  }
  std::stable_sort(operations.begin(), operations.end(), [&](int a, int b) {
    const auto key = [&](int operation) { return std::pair(-depth[static_cast<size_t>(operation)], walk.met[static_cast<size_t>(operation)]); };
    return key(a) < key(b);
  });
  return operations;
}

}  // namespace

std::vector<Model::Part> Model::parts() const {
  std::vector<Part> result;
  if (class_name == "Sequential") {
    for (size_t i = 0; i < layers.size(); ++i) result.push_back({false, static_cast<int>(i)});
    return result;
  }
  const int count = static_cast<int>(layers.size());
  for (int operation : keras_order(*this, Walk(*this))) result.push_back(operation < count ? Part{false, operation} : Part{true, operation - count});
  return result;
}

void Model::arrange(Order order) {
  const Walk walk(*this);
  // Which layers stay, in their new order.
  std::vector<int> kept;
  if (order == Order::keras) {
    for (int operation : keras_order(*this, walk)) {
      if (operation < static_cast<int>(layers.size())) kept.push_back(operation);
    }
  } else {
    for (size_t i = 0; i < layers.size(); ++i) {
      if (walk.met[i] >= 0) kept.push_back(static_cast<int>(i));
    }
  }
  // Calls in an order in which they can run: the walk's, but that owners of borrowed weights come before the borrowers.
  std::vector<int> waiting;
  for (int node : walk.nodes) {
    if (node < static_cast<int>(calls.size())) waiting.push_back(node);
  }
  if (order == Order::declared) std::sort(waiting.begin(), waiting.end());
  std::vector<std::set<int>> owners(layers.size());
  for (int layer : kept) {
    for (const std::string& path : borrowed_weights(*layers[static_cast<size_t>(layer)])) {
      const int owner = owner_of(*this, path);
      if (owner >= 0) owners[static_cast<size_t>(layer)].insert(owner);
    }
  }
  std::set<int> called;
  std::vector<bool> done(calls.size(), false);
  const auto ready = [&](int call) {
    const Call& c = calls[static_cast<size_t>(call)];
    const bool fed = std::all_of(c.inputs.begin(), c.inputs.end(), [&](const Reference& from) { return from.call < 0 || done[static_cast<size_t>(from.call)]; });
    const auto& needed = owners[static_cast<size_t>(c.layer)];
    return fed && std::all_of(needed.begin(), needed.end(), [&](int owner) { return called.contains(owner); });
  };
  std::vector<int> run;
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), ready);
    if (next == waiting.end()) {
      const Call& stuck = calls[static_cast<size_t>(waiting.front())];
      std::vector<std::string> names;
      for (int call : waiting) names.push_back(name_of_call(*this, calls[static_cast<size_t>(call)]));
      fail_at(stuck.place, source == Source::job ? "Y36" : "M23", fmt::format("each of these layers needs the others' outputs or weights first: {}; a layer can only borrow from one that does not depend on it and is called", fmt::join(names, ", ")));
    }
    done[static_cast<size_t>(*next)] = true;
    called.insert(calls[static_cast<size_t>(*next)].layer);
    run.push_back(*next);
    waiting.erase(next);
  }
  // Renumber.
  std::vector<int> new_layer(layers.size(), -1);
  std::vector<int> new_call(calls.size(), -1);
  for (size_t i = 0; i < kept.size(); ++i) new_layer[static_cast<size_t>(kept[i])] = static_cast<int>(i);
  for (size_t i = 0; i < run.size(); ++i) new_call[static_cast<size_t>(run[i])] = static_cast<int>(i);
  const auto renumber = [&](Reference& from) {
    if (from.call >= 0) from.call = new_call[static_cast<size_t>(from.call)];
  };
  std::vector<std::unique_ptr<Layer>> new_layers;
  for (int layer : kept) new_layers.push_back(std::move(layers[static_cast<size_t>(layer)]));
  layers = std::move(new_layers);
  std::vector<Call> new_calls;
  for (int call : run) {
    Call& moved = new_calls.emplace_back(std::move(calls[static_cast<size_t>(call)]));
    moved.layer = new_layer[static_cast<size_t>(moved.layer)];
    for (Reference& from : moved.inputs) renumber(from);
  }
  calls = std::move(new_calls);
  for (Output& output : outputs) renumber(output.from);
}

}  // namespace lockstep
