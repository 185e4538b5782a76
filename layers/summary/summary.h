#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/model.h"

namespace lockstep {

/// A line of a model's summary.
struct SummaryRow {
  std::string name;
  std::string type;
  std::string output_shape;  ///< "(None, 10)"; several as Keras writes them: "[(None, 8), (None, 8)]"
  int64_t parameters = 0;
  std::vector<std::string> connected_to;  ///< "shared[1][0]": layer, call, output
};

/// What a model is made of, in Keras's terms: the same for 1 rank and for 64.
struct Summary {
  std::string model;
  std::vector<SummaryRow> rows;
  int64_t trainable = 0;      ///< elements
  int64_t not_trainable = 0;  ///< elements
  int64_t trainable_bytes = 0;
  int64_t not_trainable_bytes = 0;

  /// A table as Keras prints it, in plain characters.
  std::string text() const;
};

/// Traces the outermost model for its shapes and weights.
Summary summarize(Model& model, int semantics = 3);

}  // namespace lockstep
