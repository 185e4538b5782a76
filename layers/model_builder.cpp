#include "layers/model_builder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "layers/custom/custom_layer.h"

namespace lockstep {

namespace {

const Place& key_or_value(const Value& value) { return value.key_place().source ? value.key_place() : value.place(); }

/// Sizes of one row; null for an axis whose size is not known.
Shape read_shape(const Value& value, const std::string& path) {
  Shape shape;
  for (const Value& axis : value.as_list()) {
    if (axis.is_null()) {
      shape.push_back(-1);
      continue;
    }
    const int64_t size = FieldType<int64_t>::read(axis, path);
    if (size <= 0) fail_at(axis.place(), "Y13", fmt::format("{}: an axis must be > 0, or null where it is not known, found {}", path, size));
    shape.push_back(size);
  }
  return shape;
}

struct InputSection {
  std::string name;
  Value shape;
  std::string dtype = "float32";

  void fields(Fields& fields) {
    fields.add("name", name, "the input's name, for data sets and layers").require();
    fields.add("shape", shape, "sizes of one row, without the batch; null where unknown");
    fields.add("dtype", dtype, "element type");
  }
};

DType read_dtype(const Value& mapping, const std::string& name, const std::string& path) {
  const auto dtype = dtype_from_name(name);
  if (dtype) return *dtype;
  const Value* given = mapping.find("dtype");
  const std::vector<std::string> known = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"};
  fail_at(given ? given->place() : mapping.place(), "Y13", fmt::format("{}.dtype: unknown '{}'{}", path, printable(name), did_you_mean(name, known)));
}

Model::Input read_input(const Value& mapping, const std::string& path, bool shape_required) {
  InputSection section;
  Fields fields;
  section.fields(fields);
  if (!shape_required) fields.ignore("from");
  read_fields(mapping, fields, path);
  Model::Input input;
  input.name = section.name;
  input.dtype = read_dtype(mapping, section.dtype, path);
  if (mapping.find("shape")) {
    input.shape = read_shape(section.shape, join_path(path, "shape"));
  } else if (shape_required) {
    fail_at(mapping.place(), "Y11", fmt::format("'{}' is required: sizes of one row, without the batch; [] for a number", join_path(path, "shape")));
  } else {
    input.any_shape = true;
  }
  return input;
}

/// Names in a graph: inputs, and calls by their layer's or their own name.
class GraphBuilder {
 public:
  GraphBuilder(const GraphSection& section, const LayerRegistry& registry) : section_(section), registry_(registry), model_(std::make_unique<Model>()) {
    model_->inputs = section.inputs;
  }

  std::unique_ptr<Model> build() {
    for (size_t i = 0; i < section_.inputs.size(); ++i) take_name(section_.inputs[i].name, {-1, static_cast<int>(i)}, section_.input_places[i]);
    const Value::List& entries = section_.layers->as_list();
    if (entries.empty()) fail_at(section_.layers->place(), "Y13", fmt::format("{}: at least one layer is needed", join_path(section_.path, "layers")));
    reserve_names(entries);
    for (size_t i = 0; i < entries.size(); ++i) problems_.collect([&] { add_entry(entries[i], join_path(join_path(section_.path, "layers"), i)); });
    for (const Pending& pending : pending_) problems_.collect([&] { connect(pending); });
    problems_.collect([&] { read_outputs(); });
    // Wiring is judged when every layer is there: a layer that failed would make others seem to lack inputs.
    problems_.raise();
    check_use();
    problems_.raise();
    model_->arrange(section_.order);
    return std::move(model_);
  }

 private:
  struct Pending {
    int call = 0;
    int before = -2;                ///< the call before in the list; -2: none
    const Value* inputs = nullptr;  ///< as given, or null
    bool outer_inputs = false;      ///< a model inside: mappings {name, from} too
  };

  /// Every name that the job gives, so that the automatic ones keep clear of them.
  void reserve_names(const Value::List& entries) {
    for (const Value& entry : entries) {
      const Value* name = entry.find("name");
      if (name && name->is_string()) given_.insert(name->as_string());
    }
  }

  std::string automatic_name(const std::string& type) {
    const std::string base = snake_case(type);
    for (;;) {
      const int count = counts_[base]++;
      const std::string name = count == 0 ? base : fmt::format("{}_{}", base, count);
      if (!given_.contains(name) && !names_.contains(name)) return name;
    }
  }

  void take_name(const std::string& name, Model::Reference from, const Place& place) {
    const auto [known, fresh] = names_.emplace(name, std::pair(from, place));
    if (fresh) return;
    const Place& first = known->second.second;
    const std::string lines = first.line && place.line ? fmt::format("lines {} and {}", first.line, place.line) : std::string("two places");
    problems_.add(problem_at(place, "Y29", fmt::format("layer name '{}' used at {} of '{}'", printable(name), lines, section_.path)));
  }

  void add_entry(const Value& entry, const std::string& path) {
    if (!entry.is_map()) fail_at(entry.place(), "Y12", fmt::format("{}: expected a layer ({{type: ..., ...}}), found {}", path, entry.described()));
    const int before = last_;
    Model::Call call;
    call.place = entry.place();
    std::string name;
    if (const Value* name_value = entry.find("name")) {
      name = FieldType<std::string>::read(*name_value, join_path(path, "name"));
      if (name.empty()) fail_at(name_value->place(), "Y13", fmt::format("{}.name: must not be empty", path));
    }
    // The call stands before its layer is read, so that what follows finds its name and the layer before.
    const int index = static_cast<int>(model_->calls.size());
    const Value* use = entry.find("use");
    std::unique_ptr<Layer> layer;
    bool nested = false;
    Problems failed;
    failed.collect([&] {
      if (use) {
        check_keys(entry, {"name", "use", "inputs"}, path);
      } else if (entry.find("layers")) {
        nested = true;
        layer = make_nested(entry, path);
      } else {
        layer = read_layer(entry, registry_, path);
      }
    });
    if (name.empty()) {
      const Value* type = entry.find("type");
      name = automatic_name(use && use->is_string() ? use->as_string() : type && type->is_string() ? type->as_string() : nested ? "Functional" : "layer");
    }
    const Value* name_value = entry.find("name");
    take_name(name, {index, 0}, name_value ? name_value->place() : entry.place());
    if (layer) layer->name = name;
    if (use) {
      call.layer = -1;
      call.name = name;
      uses_.emplace_back(index, use);
    } else {
      call.layer = static_cast<int>(model_->layers.size());
      model_->layers.push_back(std::move(layer));
    }
    model_->calls.push_back(std::move(call));
    pending_.push_back({index, before, entry.find("inputs"), nested});
    last_ = index;
    failed.raise();
  }

  static void check_keys(const Value& entry, const std::vector<std::string>& known, const std::string& path) {
    Problems problems;
    for (const auto& [key, value] : entry.as_map()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      problems.add(problem_at(key_or_value(value), "Y09", fmt::format("unknown key '{}' in '{}'{}; known: {}", printable(key), path, did_you_mean(key, known), fmt::join(known, ", "))));
    }
    problems.raise();
  }

  std::unique_ptr<Layer> make_nested(const Value& entry, const std::string& path) {
    check_keys(entry, {"name", "type", "layers", "inputs", "outputs", "trainable", "dtype"}, path);
    GraphSection section;
    section.layers = &entry.at("layers");
    section.outputs = entry.find("outputs");
    section.path = path;
    section.place = entry.place();
    if (const Value* inputs = entry.find("inputs")) {
      const Value::List one = {*inputs};
      for (const Value& input : inputs->is_list() ? inputs->as_list() : one) {
        if (input.is_map()) {
          section.inputs.push_back(read_input(input, join_path(path, "inputs"), false));
        } else {
          Model::Input& any = section.inputs.emplace_back();
          any.name = FieldType<std::string>::read(input, join_path(path, "inputs"));
          any.any_shape = true;
        }
        section.input_places.push_back(input.place());
      }
    } else {
      Model::Input& any = section.inputs.emplace_back();
      any.name = "input";
      any.any_shape = true;
      section.input_places.push_back(entry.place());
    }
    std::string type = "Model";
    if (const Value* given = entry.find("type")) type = FieldType<std::string>::read(*given, join_path(path, "type"));
    if (type != "Model" && type != "Functional" && type != "Sequential") {
      fail_at(entry.at("type").place(), "Y13", fmt::format("{}.type: a layer with 'layers' is a Model or a Sequential, found '{}'", path, printable(type)));
    }
    if (type == "Sequential") {
      const bool wired = std::any_of(section.layers->as_list().begin(), section.layers->as_list().end(), [](const Value& part) { return part.find("inputs") || part.find("use"); });
      if (wired || section.inputs.size() != 1 || section.outputs) {
        fail_at(entry.place(), "Y31", fmt::format("{}: a Sequential is a plain chain: one input, no 'inputs', 'use' or 'outputs' inside; write type: Model", path));
      }
    }
    std::unique_ptr<Model> model = build_graph(section, registry_);
    if (type == "Sequential") model->class_name = "Sequential";
    if (const Value* trainable = entry.find("trainable")) model->trainable = FieldType<bool>::read(*trainable, join_path(path, "trainable"));
    if (const Value* dtype = entry.find("dtype")) {
      policy_of(*dtype);
      model->dtype = *dtype;
    }
    return model;
  }

  std::vector<std::string> known_names() const {
    std::vector<std::string> result;
    for (const auto& [name, from] : names_) result.push_back(name);
    return result;
  }

  /// "tower", or "tower:1": its second output.
  std::optional<Model::Reference> find(const std::string& text) const {
    if (const auto known = names_.find(text); known != names_.end()) return known->second.first;
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto known = names_.find(text.substr(0, colon));
    int index = 0;
    const auto [end, failed] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
    if (known == names_.end() || failed != std::errc() || end != text.data() + text.size() || index < 0) return std::nullopt;
    Model::Reference from = known->second.first;
    if (from.call < 0 && index > 0) return std::nullopt;
    if (from.call >= 0) from.index = index;
    return from;
  }

  Model::Reference resolve(const Value& value, const std::string& reader) const {
    const std::string& text = FieldType<std::string>::read(value, reader);
    if (const auto from = find(text)) return *from;
    std::string hint = did_you_mean(text.substr(0, text.rfind(':')), known_names());
    if (hint.empty()) hint = fmt::format("; known: {}", fmt::join(known_names(), ", "));
    fail_at(value.place(), "Y31", fmt::format("{} reads '{}', which no layer produces{}", reader, printable(text), hint));
  }

  void connect(const Pending& pending) {
    Model::Call& call = model_->calls[static_cast<size_t>(pending.call)];
    const auto own = std::find_if(names_.begin(), names_.end(), [&](const auto& known) { return known.second.first == Model::Reference{pending.call, 0}; });
    const std::string name = own == names_.end() ? std::string("?") : own->first;
    const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const auto& entry) { return entry.first == pending.call; });
    if (use != uses_.end()) {
      const std::string& target = FieldType<std::string>::read(*use->second, fmt::format("layer '{}': use", name));
      const auto known = names_.find(target);
      const int shared = known == names_.end() ? -1 : known->second.first.call;
      if (shared < 0 || model_->calls[static_cast<size_t>(shared)].layer < 0) {
        fail_at(use->second->place(), "Y31", fmt::format("layer '{}' uses '{}', which is no layer of '{}'{}", name, printable(target), section_.path, did_you_mean(target, known_names())));
      }
      call.layer = model_->calls[static_cast<size_t>(shared)].layer;
    }
    if (!pending.inputs) {
      if (pending.before >= 0) {
        call.inputs = {{pending.before, 0}};
      } else if (const size_t inputs = model_->inputs.size() - section_.own_weights; inputs == 1) {
        call.inputs = {{-1, 0}};
      } else {
        fail_at(call.place, "Y31", fmt::format("layer '{}' is the first and there are {} inputs; say which it reads: inputs: [...]", name, inputs));
      }
      return;
    }
    const Value::List one = {*pending.inputs};
    for (const Value& input : pending.inputs->is_list() ? pending.inputs->as_list() : one) {
      const Value* from = pending.outer_inputs && input.is_map() ? input.find("from") : nullptr;
      if (pending.outer_inputs && input.is_map() && !from) from = &input.at("name");
      call.inputs.push_back(resolve(from ? *from : input, fmt::format("layer '{}'", name)));
    }
    if (call.inputs.empty()) fail_at(pending.inputs->place(), "Y31", fmt::format("layer '{}' has no inputs", name));
  }

  void read_outputs() {
    const Value* given = section_.outputs;
    std::map<std::string, int> seen;
    const auto add = [&](std::optional<std::string> key, Model::Reference from) {
      if (!key) {
        const auto known = std::find_if(names_.begin(), names_.end(), [&](const auto& name) { return name.second.first == Model::Reference{from.call, from.call < 0 ? from.index : 0}; });
        key = known == names_.end() ? std::string("output") : known->first;
        const int count = seen[*key]++;
        if (count > 0) key = fmt::format("{}_{}", *key, count);
      }
      model_->outputs.push_back({*key, from});
    };
    const std::string reader = fmt::format("'{}'", join_path(section_.path, "outputs"));
    if (!given || given->is_null()) {
      if (last_ >= 0) add({}, {last_, 0});
    } else if (given->is_map()) {
      model_->dict_outputs = true;
      for (const auto& [key, value] : given->as_map()) add(key, resolve(value, reader));
    } else if (given->is_list()) {
      for (const Value& value : given->as_list()) add({}, resolve(value, reader));
    } else {
      add({}, resolve(*given, reader));
    }
    if (model_->outputs.empty()) fail_at(given ? given->place() : section_.place, "Y31", fmt::format("{} names no output", reader));
  }

  /// A layer or an input that no output needs is a mistake, not a wish.
  void check_use() {
    std::vector<bool> needed(model_->calls.size(), false);
    std::set<int> inputs;
    std::vector<Model::Reference> waiting;
    for (const Model::Output& output : model_->outputs) waiting.push_back(output.from);
    while (!waiting.empty()) {
      const Model::Reference from = waiting.back();
      waiting.pop_back();
      if (from.call < 0) {
        inputs.insert(from.index);
      } else if (!needed[static_cast<size_t>(from.call)]) {
        needed[static_cast<size_t>(from.call)] = true;
        const auto& next = model_->calls[static_cast<size_t>(from.call)].inputs;
        waiting.insert(waiting.end(), next.begin(), next.end());
      }
    }
    for (const auto& [name, where] : names_) {
      const auto& [from, place] = where;
      if (from.call >= 0 && !needed[static_cast<size_t>(from.call)]) {
        // A cycle off the outputs' way is told as what it is.
        Model::Reference at = from;
        std::vector<int> chain;
        while (at.call >= 0 && std::find(chain.begin(), chain.end(), at.call) == chain.end()) {
          chain.push_back(at.call);
          at = model_->calls[static_cast<size_t>(at.call)].inputs.front();
        }
        const std::string text = at.call < 0 ? fmt::format("layer '{}' leads to no output; remove it, or name it in 'outputs'", name) : fmt::format("layer '{}' leads to no output and is fed by a cycle", name);
        problems_.add(problem_at(place, "Y31", text));
      } else if (from.call < 0 && !inputs.contains(from.index)) {
        problems_.add(problem_at(place, "Y31", fmt::format("input '{}' of '{}' is read by no layer that leads to an output", name, section_.path)));
      }
    }
  }

  const GraphSection& section_;
  const LayerRegistry& registry_;
  std::unique_ptr<Model> model_;
  Problems problems_;
  std::map<std::string, std::pair<Model::Reference, Place>> names_;
  std::set<std::string> given_;
  std::map<std::string, int> counts_;
  std::vector<Pending> pending_;
  std::vector<std::pair<int, const Value*>> uses_;
  int last_ = -2;
};

void check_borrow(const Value& borrow, const std::string& path) {
  for (const auto& [key, value] : borrow.as_map()) {
    if (key == "transposed") {
      FieldType<bool>::read(value, join_path(path, key));
    } else {
      FieldType<std::string>::read(value, join_path(path, key));
    }
  }
  if (borrow.size() == (borrow.find("transposed") ? 1u : 0u)) {
    fail_at(borrow.place(), "Y36", fmt::format("{}: names no weight; write {{kernel: layer/kernel}}, with transposed: true where it is to be read so", path));
  }
}

}  // namespace

std::unique_ptr<Layer> read_layer(const Value& entry, const LayerRegistry& registry, const std::string& path) {
  const Value* type = entry.find("type");
  if (!type) fail_at(entry.place(), "Y11", fmt::format("'{}' is required: a layer's type ('lockstep list layers')", join_path(path, "type")));
  const std::string& name = FieldType<std::string>::read(*type, join_path(path, "type"));
  const LayerRegistry::Make* make = registry.find(name);
  if (!make) fail_at(type->place(), "Y30", fmt::format("unknown layer '{}'{} ('lockstep list layers')", printable(name), did_you_mean(name, registry.types())));
  std::unique_ptr<Layer> layer = (*make)();
  auto* custom = dynamic_cast<CustomLayer*>(layer.get());
  if (custom) custom->check_parameters(entry, {"type", "inputs", "borrow", "name", "trainable", "dtype"}, path);
  Fields fields;
  layer->base_fields(fields);
  layer->fields(fields);
  for (const char* key : {"type", "inputs"}) fields.ignore(key);
  read_fields(entry, fields, path);
  policy_of(layer->dtype);
  if (!layer->borrow.is_null()) check_borrow(layer->borrow, join_path(path, "borrow"));
  if (custom) custom->inner();  // its problems are told with the others
  return layer;
}

std::unique_ptr<Model> build_graph(const GraphSection& section, const LayerRegistry& registry) { return GraphBuilder(section, registry).build(); }

namespace {

struct ModelSection {
  std::string name = "model";
  Value dtype_policy;
  Value inputs;
  Value layers;
  Value outputs;

  void fields(Fields& fields) {
    fields.add("name", name, "the model's name in files and summaries");
    fields.add("dtype_policy", dtype_policy, "float32, mixed_float16, mixed_bfloat16, ...");
    fields.add("inputs", inputs, "what comes in: [{name, shape, dtype}]").require();
    fields.add("layers", layers, "the layers, in order").require();
    fields.add("outputs", outputs, "names of the layers that give the results, or {key: layer}");
  }
};

}  // namespace

std::unique_ptr<Model> build_model(const Value& value, const LayerRegistry& registry) {
  const ModelSection read = read_described<ModelSection>(value, "model");
  Problems problems;
  GraphSection section;
  section.layers = &read.layers;
  section.outputs = &read.outputs;
  section.path = "model";
  section.place = value.place();
  problems.collect([&] { policy_of(read.dtype_policy); });
  const Value::List one = {read.inputs};
  const Value::List& inputs = read.inputs.is_list() ? read.inputs.as_list() : one;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* name = inputs[i].find("name");
    problems.collect([&] { section.inputs.push_back(read_input(inputs[i], join_path("model.inputs", i), true)); });
    // An input that failed keeps its name, so that layers which read it don't fail for that.
    if (section.inputs.size() == i) section.inputs.emplace_back().name = name && name->is_string() ? name->as_string() : fmt::format("input {}", i);
    section.input_places.push_back(name ? name->place() : inputs[i].place());
  }
  if (inputs.empty()) problems.add(problem_at(read.inputs.place(), "Y13", "model.inputs: at least one input is needed"));
  std::unique_ptr<Model> model;
  problems.collect([&] { model = build_graph(section, registry); });
  problems.raise();
  model->name = read.name;
  model->dtype_policy = read.dtype_policy;
  check_whole(*model);
  return model;
}

}  // namespace lockstep
