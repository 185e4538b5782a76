#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/hdf5/reader.h"
#include "io/json/json.h"
#include "io/model_file/input_file.h"
#include "io/model_file/keras_config.h"
#include "io/model_file/keras_hdf5.h"
#include "io/model_file/keras_zip.h"
#include "io/model_file/stored_model.h"
#include "io/tensorflow/checkpoint_reader.h"
#include "io/tensorflow/saved_model_reader.h"
#include "io/zip/reader.h"

namespace lockstep {
namespace {

namespace files = std::filesystem;

bool is_saved_model(const std::string& folder) {
  for (const char* part : {"saved_model.pb", "keras_metadata.pb", "variables"}) {
    if (files::exists(folder + "/" + part)) return true;
  }
  return false;
}

// The one checkpoint in a folder.
std::string prefix_in(const std::string& folder) {
  std::vector<std::string> prefixes;
  for (const auto& entry : files::directory_iterator(folder)) {
    if (entry.path().extension() == ".index") prefixes.push_back((entry.path().parent_path() / entry.path().stem()).string());
  }
  std::sort(prefixes.begin(), prefixes.end());
  if (prefixes.size() == 1) return prefixes.front();
  if (prefixes.empty()) throw Error("S01", folder, "is neither a SavedModel (no saved_model.pb) nor does it hold a TensorFlow checkpoint (no *.index)");
  std::string names;
  for (size_t i = 0; i < prefixes.size() && i < 8; ++i) names += (i > 0 ? ", " : "") + printable(prefixes[i]);
  throw Error("S01", folder, fmt::format("holds {} checkpoints: {}; name one by its prefix", prefixes.size(), names));
}

// "ckpt.index" and "ckpt.data-00000-of-00001" stand for the prefix "ckpt".
std::string prefix_of(const std::string& path) {
  if (path.ends_with(".index")) return path.substr(0, path.size() - 6);
  const size_t data = path.rfind(".data-");
  return data != std::string::npos && path.find("-of-", data) != std::string::npos ? path.substr(0, data) : path;
}

bool is_checkpoint(const std::string& prefix) {
  if (files::exists(prefix + ".index")) return true;
  // Without its index, too: the error shall say what is missing.
  const files::path path(prefix);
  const files::path parent = path.parent_path();
  const std::string start = path.filename().string() + ".data-";
  std::error_code ignored;
  for (const auto& entry : files::directory_iterator(parent.empty() ? "." : parent, ignored)) {
    if (entry.path().filename().string().starts_with(start)) return true;
  }
  return false;
}

StoredModel read_hdf5(const std::string& path) {
  auto file = std::make_shared<const hdf5::WeightsFile>(path);
  return is_legacy_layout(*file) ? read_legacy_hdf5(std::move(file)) : read_object_hdf5(std::move(file), 0);
}

bool is_json(const InputFile& file) {
  std::string start(std::min<uint64_t>(file.size(), 64), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  const size_t first = start.find_first_not_of(" \t\r\n");
  return first != std::string::npos && start[first] == '{';
}

}  // namespace

StoredModel open_model_file(const std::string& path) {
  if (files::is_directory(path)) return is_saved_model(path) ? tensorflow::read_saved_model(path) : tensorflow::read_checkpoint(prefix_in(path));
  if (const std::string prefix = prefix_of(path); is_checkpoint(prefix)) return tensorflow::read_checkpoint(prefix);
  if (!files::exists(path)) throw Error("H01", path, "no such file: neither a model file, a SavedModel folder nor the prefix of a TensorFlow checkpoint");
  if (is_zip(path)) return read_keras_zip(path);
  // An archive is no archive any more when its first bytes are gone, but its name still says what it was to be.
  if (path.ends_with(".keras") && !hdf5::signature_offset(path)) throw Error("Z01", path, "is not a .keras archive: not a zip file");
  return read_hdf5(path);
}

Value read_architecture(const std::string& path) {
  if (files::is_regular_file(path) && is_zip(path)) return read_keras_zip_config(path);
  if (files::is_regular_file(path) && !hdf5::signature_offset(path)) {
    const InputFile file(path, "H27");
    if (is_json(file)) return read_json_text(path, file.read_all(max_config_bytes), "H27");
  }
  const StoredModel model = open_model_file(path);
  if (model.architecture) return *model.architecture;
  const std::string reason = model.format == "keras-h5"      ? "attribute model_config is missing"
                             : model.format == "saved-model" ? "its model is no Sequential or Functional one of tf_keras"
                                                             : "files of this kind have weights only";
  throw Error(model.format.ends_with("h5") ? "H27" : "S21", path, fmt::format("holds no architecture ({}); describe the model in the job", reason));
}

}  // namespace lockstep
