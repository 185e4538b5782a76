#include "layers/activation.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/identifier.h"

namespace lockstep {

namespace {

/// Arguments of all activations; each describes those that it has.
struct Arguments {
  double alpha = 1;
  double negative_slope = 0;
  std::optional<double> max_value;
  double threshold = 0;
  double default_value = 0;
  double b = 4;
  Axis axis;
  bool approximate = false;
};

struct Entry {
  std::string_view name;
  Symbol (*apply)(Symbol x, const Arguments& arguments, int semantics);
  void (*describe)(Arguments& arguments, Fields& fields);
};

void none(Arguments&, Fields&) {}
void alpha(Arguments& a, Fields& fields) { fields.add("alpha", a.alpha, "limit for negative values is -alpha"); }
void axis(Arguments& a, Fields& fields) { fields.add("axis", a.axis, "axis along which elements compete"); }
void leaky_slope(Arguments& a, Fields& fields, double slope) {
  a.negative_slope = slope;
  fields.add("negative_slope", a.negative_slope, "slope for values below zero").at_least(0);
}
void relu_arguments(Arguments& a, Fields& fields) {
  fields.add("negative_slope", a.negative_slope, "slope for values below the threshold").at_least(0);
  fields.add("max_value", a.max_value, "largest value; null: none").at_least(0);
  fields.add("threshold", a.threshold, "values below it are damped").at_least(0);
}
void shrink_threshold(Arguments& a, Fields& fields) {
  a.threshold = 0.5;
  fields.add("threshold", a.threshold, "values nearer to zero become zero");
}

template <Symbol (*function)(Symbol)>
Symbol plain(Symbol x, const Arguments&, int) {
  return function(x);
}

const Entry entries[] = {
    {"celu", [](Symbol x, const Arguments& a, int) { return ops::celu(x, a.alpha); }, alpha},
    {"elu", [](Symbol x, const Arguments& a, int) { return ops::elu(x, a.alpha); }, alpha},
    {"exponential", plain<ops::exp>, none},
    {"gelu", [](Symbol x, const Arguments& a, int) { return ops::gelu(x, a.approximate); }, [](Arguments& a, Fields& fields) { fields.add("approximate", a.approximate, "by tanh"); }},
    {"glu", [](Symbol x, const Arguments& a, int) { return ops::glu(x, a.axis.index); }, axis},
    {"hard_shrink", [](Symbol x, const Arguments& a, int) { return ops::hard_shrink(x, a.threshold); }, shrink_threshold},
    {"hard_sigmoid", [](Symbol x, const Arguments&, int semantics) { return semantics == 2 ? ops::hard_sigmoid_keras2(x) : ops::hard_sigmoid(x); }, none},
    {"hard_silu", plain<ops::hard_silu>, none},
    {"hard_tanh", plain<ops::hard_tanh>, none},
    {"leaky_relu", [](Symbol x, const Arguments& a, int) { return ops::relu(x, a.negative_slope); }, [](Arguments& a, Fields& fields) { leaky_slope(a, fields, 0.2); }},
    {"linear", [](Symbol x, const Arguments&, int) { return x; }, none},
    {"log_sigmoid", plain<ops::log_sigmoid>, none},
    {"log_softmax", [](Symbol x, const Arguments& a, int) { return ops::log_softmax(x, a.axis.index); }, axis},
    {"mish", plain<ops::mish>, none},
    {"relu", [](Symbol x, const Arguments& a, int) { return ops::relu(x, a.negative_slope, a.max_value, a.threshold); }, relu_arguments},
    {"relu6", plain<ops::relu6>, none},
    {"selu", plain<ops::selu>, none},
    {"sigmoid", plain<ops::sigmoid>, none},
    {"silu", plain<ops::silu>, none},
    {"soft_shrink", [](Symbol x, const Arguments& a, int) { return ops::soft_shrink(x, a.threshold); }, shrink_threshold},
    {"softmax", [](Symbol x, const Arguments& a, int) { return ops::softmax(x, a.axis.index); }, axis},
    {"softplus", plain<ops::softplus>, none},
    {"softsign", plain<ops::softsign>, none},
    {"sparse_plus", plain<ops::sparse_plus>, none},
    {"sparse_sigmoid", plain<ops::sparse_sigmoid>, none},
    {"sparsemax", [](Symbol x, const Arguments& a, int) { return ops::sparsemax(x, a.axis.index); }, axis},
    {"squareplus", [](Symbol x, const Arguments& a, int) { return ops::squareplus(x, a.b); }, [](Arguments& a, Fields& fields) { fields.add("b", a.b, "smoothness"); }},
    {"tanh", plain<ops::tanh>, none},
    {"tanh_shrink", plain<ops::tanh_shrink>, none},
    {"threshold", [](Symbol x, const Arguments& a, int) { return ops::threshold(x, a.threshold, a.default_value); },
     [](Arguments& a, Fields& fields) {
       fields.add("threshold", a.threshold, "values at or below it are replaced").require();
       fields.add("default_value", a.default_value, "what replaces them").require();
     }},
};

/// Other names of Keras, and layers that are activations: their defaults are their own.
struct Alias {
  std::string_view name;
  std::string_view means;
  std::string_view layer;  ///< Keras's class, where it is one
  void (*describe)(Arguments& arguments, Fields& fields);
};

const Alias aliases[] = {
    {"swish", "silu", "", nullptr},
    {"hard_swish", "hard_silu", "", nullptr},
    {"ReLU", "relu", "ReLU", relu_arguments},
    {"LeakyReLU", "leaky_relu", "LeakyReLU",
     [](Arguments& a, Fields& fields) {
       leaky_slope(a, fields, 0.3);
       fields.add("alpha", a.negative_slope, "Keras 2's name of negative_slope").write = nullptr;
     }},
    {"ELU", "elu", "ELU", alpha},
    {"Softmax", "softmax", "Softmax", axis},  // Keras 2 writes the axis as a list of one
};

const Entry* find_entry(std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == std::end(entries) ? nullptr : found;
}

/// Functions, then layers: the nearest name that is told is a function's where both are as near.
std::vector<std::string> names_by_kind() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  for (const Alias& alias : aliases) names.emplace_back(alias.name);
  return names;
}

}  // namespace

Symbol ActivationFunction::apply(Symbol x, int semantics) const { return function_ ? function_(x, semantics) : x; }

std::vector<std::string> activation_names() {
  std::vector<std::string> names = names_by_kind();
  std::ranges::sort(names);
  return names;
}

ActivationFunction make_activation(const Value& value) {
  ActivationFunction result;
  if (value.is_null()) return result;
  const Identifier identifier = read_identifier(value, "activation");
  const auto alias = std::ranges::find(aliases, identifier.name, &Alias::name);
  const bool is_alias = alias != std::end(aliases);
  const Entry* entry = find_entry(is_alias ? alias->means : std::string_view(identifier.name));
  if (!entry) fail_unknown(identifier, "activation", names_by_kind());

  Arguments arguments;
  Fields fields;
  const bool is_layer = is_alias && !alias->layer.empty();
  (is_layer ? alias->describe : entry->describe)(arguments, fields);
  if (is_layer) {
    // What Keras writes for any layer, and what says nothing of the function.
    for (const std::string_view key : {"name", "trainable", "dtype"}) fields.ignore(key);
  }
  Value config = identifier.config;
  // Keras 2 writes null where a number has its default.
  if (config.is_map() && is_layer) {
    Value given = Value::map();
    for (const auto& [key, member] : config.as_map()) {
      if (!member.is_null()) given.set(key, member);
    }
    config = given;
  }
  read_fields(config, fields, identifier.name);
  if (entry->name == "linear") return result;

  result.function_ = [apply = entry->apply, arguments](Symbol x, int semantics) { return apply(x, arguments, semantics); };
  if (is_layer) {
    result.written_ = keras_class_config("keras.layers", alias->layer, write_fields(fields));
  } else if (identifier.config.is_map() && identifier.config.size() > 0) {
    result.written_ = write_fields(fields);
    result.written_.set("type", entry->name);
  } else {
    result.written_ = entry->name;
  }
  return result;
}

}  // namespace lockstep
