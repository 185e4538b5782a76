#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// The calls in a functional model's config: `inbound_nodes` of Keras 2 ([["layer", node, tensor, {arguments}], ...]) and of Keras 3
/// ({"args": [...], "kwargs": {...}} with __keras_tensor__), turned into a model's calls.
class KerasNodes {
 public:
  /// "layer, node, tensor" in a config: output `tensor` of the layer's call number `node`.
  struct Tensor {
    std::string layer;
    int64_t node = 0;
    int64_t tensor = 0;
  };
  /// One of input_layers or output_layers; a key where they are a mapping.
  struct Named {
    std::string key;
    Tensor tensor;
  };

  /// `path` of the model, for messages.
  explicit KerasNodes(std::string path) : path_(std::move(path)) {}

  void add_layer(const std::string& name, int layer, bool is_model);
  void add_input(const std::string& name, int input);
  /// The layer's `inbound_nodes`. M23 when they are malformed, M22 for arguments that no layer takes here.
  void read(const std::string& layer, const Value& inbound_nodes, const Place& place);
  /// Tells of a tensor that is used elsewhere (an output): it decides how nodes of models inside are counted.
  void note_use(const Tensor& tensor);
  /// Makes the model's calls. `keys`: of the inputs of models inside that take a mapping. M23 for layers and nodes that don't exist.
  void connect(Model& model, const std::map<std::string, std::vector<std::string>>& keys);
  /// Where a tensor comes from; after connect().
  Model::Reference resolve(const Tensor& tensor, const std::string& reader, const Place& place) const;

  /// input_layers and output_layers: ["x", 0, 0], [["x", 0, 0], ...] or {"key": ["x", 0, 0], ...}.
  static std::vector<Named> named_tensors(const Value& value, const std::string& path);

 private:
  struct Argument {
    std::string key;  ///< where the arguments are a mapping
    Tensor tensor;
  };
  struct Node {
    std::string layer;
    std::vector<Argument> inputs;
    std::optional<bool> training;
    Place place;
  };
  struct Known {
    int layer = -1;
    int input = -1;
    bool is_model = false;
    bool first_is_used = false;  ///< something reads its node 0
    bool keras2 = false;         ///< its nodes are written as Keras 2 does
    std::vector<int> calls;
  };

  void collect(const Value& value, const std::string& key, Node& node);
  void read_arguments(const Value& arguments, Node& node);

  std::string path_;
  std::map<std::string, Known> known_;
  std::vector<Node> nodes_;
};

}  // namespace lockstep
