#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/value/fields.h"
#include "core/value/value.h"

namespace lockstep {

/// The format of checkpoint folders that is written, and the newest that is read.
constexpr int64_t checkpoint_format = 1;
constexpr std::string_view manifest_name = "manifest.json";
constexpr std::string_view state_name = "state.json";

/// A file of a checkpoint.
struct FileRecord {
  std::string name;  ///< right below the checkpoint's folder: no '/', no ".."
  int64_t bytes = 0;
  std::string hash;  ///< as hash_of

  void fields(Fields& fields);
};

/// A tensor of a checkpoint. Where `file` is given, its values lie in that file as they are, so that damage can be named.
struct TensorRecord {
  std::string name;  ///< "hidden/kernel"
  std::string dtype;
  Shape shape;
  std::string hash;  ///< as hash_of
  std::string file;  ///< "model.keras"; empty: not said
  int64_t offset = 0;

  void fields(Fields& fields);
};

/// The record of a tensor that a file holds from `offset` on, or nowhere in one piece.
TensorRecord record_of(std::string name, const Tensor& tensor, std::string file = "", uint64_t offset = 0);

/// What a checkpoint consists of: written last, so that a folder with a manifest that holds is whole.
///
///   format, step              of the folder's layout; of the run
///   files                     name, bytes and XXH3-64 of each but the manifest
///   tensors                   name, dtype, shape and XXH3-64 of each; file and offset
///   facts                     processor, oneDNN, ...: what the bits of a run depend on
///   hash                      last: XXH3-64 of all bytes before this member
struct Manifest {
  int64_t format = checkpoint_format;
  int64_t step = 0;
  std::vector<FileRecord> files;
  std::vector<TensorRecord> tensors;
  Value facts = Value::map();

  void fields(Fields& fields);
  const FileRecord* find(std::string_view name) const;
};

std::string manifest_text(const Manifest& manifest);

/// What is wrong with a checkpoint.
struct Damage : std::exception {
  Damage(std::string code, std::string headline, std::string detail) : code(std::move(code)), headline(std::move(headline)), detail(std::move(detail)) {}
  const char* what() const noexcept override { return headline.c_str(); }

  std::string code;      ///< C01, C02, C03, C05, C10
  std::string headline;  ///< "step_00000500 is incomplete", "step_00000500/model.keras: tensor 'hidden/kernel' damaged"
  std::string detail;    ///< "manifest.json is missing"; may be empty
};

/// A checkpoint folder whose every byte is as the manifest says.
struct Verified {
  Manifest manifest;
  Value state;  ///< state.json; null when the checkpoint has none
};

/// Reads all of a checkpoint folder; throws Damage at the first thing that is wrong. `name` is what messages call it.
Verified read_checkpoint(const std::string& folder, const std::string& name);

}  // namespace lockstep
