#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/model_file/stored_model.h"

namespace lockstep {

/// Keras's class from a name in a file: "Custom>Adam", "Adam", "adam", "adam_w_1" -> "Adam", "AdamW"; unknown ones without their package.
std::string optimizer_class(std::string_view name);

/// What the name of an optimizer's variable says.
struct SlotName {
  std::string slot;          ///< as Keras 3 calls the list: "momentums", "velocity_hats"; empty when the name doesn't say
  std::string weight;        ///< the weight's full name: "hidden/kernel"; in Keras 3 with '_' for every '/'; empty when the name doesn't say
  bool underscored = false;  ///< the weight's name has '_' for '/'
};
///   tf_keras from 2.11   Adam/m/hidden/kernel:0
///   legacy, until 2.10   Adam/hidden/kernel/m:0
///   Keras 3              adam/hidden_kernel_momentum
/// Sources: the variables that real tf_keras and Keras 3 optimizers make.
SlotName read_slot_name(std::string_view name, std::string_view class_name);

/// Lets each slot name the weight that it belongs to: the tensor whose full name its own name holds. Where weights share a name, the k-th slot is the k-th weight's,
/// if there are as many slots as weights; else the slot names none. `names` are the slots' variable names, `weight_names` the tensors' full names.
void name_weights(StoredOptimizer& optimizer, const std::vector<SlotName>& names, const std::vector<StoredTensor>& tensors, const std::vector<std::string>& weight_names);

/// Lets a slot's tensor name a weight.
void belong_to(StoredTensor& slot, const StoredTensor& weight);

}  // namespace lockstep
