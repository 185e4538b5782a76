#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trainer/row_source.h"
#include "core/value/fields.h"
#include "core/value/value.h"

namespace lockstep {

/// A data set of a job: `data.train`, `data.validation`.
struct DataDescription {
  std::optional<std::string> format;
  Value path;
  std::optional<int64_t> samples;
  Value inputs;
  Value targets;
  Value sample_weight;
  std::map<std::string, std::string> cast;

  void fields(Fields& fields);
};

/// What a model takes and gives: a data set must fit it.
struct DataExpectation {
  struct Input {
    std::string name;
    Shape row;  ///< one row; an axis of -1 takes the size that the data has
    DType dtype = DType::f32;
  };
  struct Output {
    std::string name;
    Shape row;            ///< what synthetic targets look like unless they say; -1 as above
    int64_t classes = 0;  ///< stored labels must lie in [0, classes); 0: not checked
  };
  std::vector<Input> inputs;    ///< in the model's order
  std::vector<Output> outputs;  ///< in the model's order
};

struct OpenedData {
  std::unique_ptr<RowSource> rows;
  std::vector<std::string> notes;  ///< a line each, for the log: "data.train.inputs.x: float64 in x.npy is read as float32"
};

/// Opens a data set and fits it to a model. Columns come in the model's order: inputs, then targets, then sample weights.
/// Inputs have the model's dtype and row shape (a last axis of 1 is added or left out, as Keras does), targets the stored ones unless cast says otherwise,
/// weights are float32. Relative paths begin at the folder of the file in which they are written; a path may be a glob or a list: rows one after the other.
///
/// `path` is the description's place in the job: "data.train". Synthetic values are a function of (seed, path, column, row, element).
/// Throws Error: Y codes for the description; D01 no file or no rows; D06 lengths differ; D08, D09 .npy and .npz; D10, D11 IDX; D12 shape; D17 dtype; H codes.
/// The source's read() throws D04 for a value that is not finite, D05 for a label without class, D13 for a file that changed; fingerprint() D13.
OpenedData open_data(const Value& description, const std::string& path, const DataExpectation& model, uint64_t seed);

/// Opens the inputs of a prediction, as open_data does, with no targets. `specification` is one of
///   FILE.h5:/group, FILE.npz   an array for each input name ('%' and '/' in a name are %25 and %2F in HDF5); where the model has one input, also FILE:array
///   FILE.npy                   where the model has one input
///   FILE.csv                   numbers, with or without a line of titles: where the model has one input, its elements in order; else titles NAME, or NAME_0,
///                              NAME_1, ... for each input. Throws D02 for a line of another length, D03 for what is no number.
OpenedData open_inputs(const std::string& specification, const DataExpectation& model);

}  // namespace lockstep
