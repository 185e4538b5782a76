#include "io/model_file/optimizer_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 15> classes = {"SGD", "RMSprop", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "Nadam",
                                                      "Ftrl", "Lion", "Lamb", "Muon", "Adafactor", "LossScaleOptimizer", "ScheduleFreeAdamW"};

std::string plain(std::string_view name) {
  std::string letters;
  for (const char letter : name) {
    if (letter != '_') letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
  }
  return letters;
}

using Piece = std::pair<std::string_view, std::string_view>;

// Parts of tf_keras's variable names; the last four are legacy's alone.
constexpr std::array<Piece, 16> pieces = {{{"m", "momentums"},
                                           {"v", "velocities"},
                                           {"vhat", "velocity_hats"},
                                           {"velocity", "velocities"},
                                           {"momentum", "momentums"},
                                           {"average_gradient", "average_gradients"},
                                           {"accumulator", "accumulators"},
                                           {"linear", "linears"},
                                           {"accumulated_grad", "accumulated_grads"},
                                           {"accumulated_delta_var", "accumulated_delta_vars"},
                                           {"average", "model_variables_moving_average"},
                                           {"u", "u"},
                                           {"rms", "velocities"},
                                           {"mg", "average_gradients"},
                                           {"accum_grad", "accumulated_grads"},
                                           {"accum_var", "accumulated_delta_vars"}}};

// Ends of Keras 3's variable names, those that end with another first.
constexpr std::array<Piece, 11> endings = {{{"_velocity_hat", "velocity_hats"},
                                            {"_accumulated_delta_var", "accumulated_delta_vars"},
                                            {"_accumulated_grad", "accumulated_grads"},
                                            {"_average_gradient", "average_gradients"},
                                            {"_gradient_accumulator", "accumulated_gradients"},
                                            {"_momentum", "momentums"},
                                            {"_velocity", "velocities"},
                                            {"_norm", "u"},
                                            {"_accumulator", "accumulators"},
                                            {"_linear", "linears"},
                                            {"_average", "model_variables_moving_average"}}};

// Adamax and Adafactor call their lists by letters.
std::string list_of(std::string_view slot, std::string_view class_name, bool is_legacy) {
  if (class_name == "Adamax" && slot == "momentums") return "m";
  if (class_name == "Adamax" && slot == "velocities" && is_legacy) return "u";
  if (class_name == "Adafactor" && slot == "velocities") return "v";
  return std::string(slot);
}

std::optional<std::string_view> piece_named(std::string_view name) {
  for (const auto& [piece, slot] : pieces) {
    if (piece == name) return slot;
  }
  return std::nullopt;
}

std::string underscored(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

std::string optimizer_class(std::string_view name) {
  const size_t package = name.rfind('>');
  if (package != std::string_view::npos) name.remove_prefix(package + 1);
  // The n-th object of a class is named "adam_1".
  const size_t number = name.find_last_not_of("0123456789");
  const std::string_view base = number != std::string_view::npos && number + 1 < name.size() && name[number] == '_' ? name.substr(0, number) : name;
  for (const std::string_view known : classes) {
    if (plain(base) == plain(known)) return std::string(known);
  }
  return std::string(name);
}

SlotName read_slot_name(std::string_view name, std::string_view class_name) {
  if (name.ends_with(":0")) name.remove_suffix(2);
  // Keras 2.2 and older.
  if (name.starts_with("training/")) name.remove_prefix(9);
  const size_t first = name.find('/');
  if (first == std::string_view::npos) return {};
  const std::string_view rest = name.substr(first + 1);
  const size_t second = rest.find('/');
  if (second == std::string_view::npos) {
    if (class_name == "Nadam" && rest == "variable") return {"u_product", "", false};
    for (const auto& [ending, slot] : endings) {
      if (rest.ends_with(ending)) return {list_of(slot, class_name, false), std::string(rest.substr(0, rest.size() - ending.size())), true};
    }
    return {};
  }
  if (const auto slot = piece_named(rest.substr(0, second))) return {list_of(*slot, class_name, false), std::string(rest.substr(second + 1)), false};
  const size_t last = rest.rfind('/');
  if (const auto slot = piece_named(rest.substr(last + 1))) return {list_of(*slot, class_name, true), std::string(rest.substr(0, last)), false};
  return {};
}

void belong_to(StoredTensor& slot, const StoredTensor& weight) {
  slot.layer = weight.layer;
  slot.variable = weight.variable;
  slot.object_path = weight.object_path;
  slot.index = weight.index;
  slot.trainable = weight.trainable;
}

void name_weights(StoredOptimizer& optimizer, const std::vector<SlotName>& names, const std::vector<StoredTensor>& tensors, const std::vector<std::string>& weight_names) {
  std::map<std::string, std::vector<size_t>> weights;
  std::map<std::string, std::vector<size_t>> underscored_weights;
  for (size_t i = 0; i < tensors.size(); ++i) {
    weights[weight_names[i]].push_back(i);
    underscored_weights[underscored(weight_names[i])].push_back(i);
  }
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> slots;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].weight.empty()) slots[{names[i].slot, names[i].weight}].push_back(i);
  }
  for (const auto& [name, members] : slots) {
    const auto& candidates = names[members.front()].underscored ? underscored_weights : weights;
    const auto found = candidates.find(name.second);
    if (found == candidates.end() || found->second.size() != members.size()) continue;
    for (size_t k = 0; k < members.size(); ++k) belong_to(optimizer.slots[members[k]].tensor, tensors[found->second[k]]);
  }
}

}  // namespace lockstep
