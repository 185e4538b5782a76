#include "io/model_file/keras_zip.h"

#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error/error.h"
#include "io/hdf5/reader.h"
#include "io/json/json.h"
#include "io/model_file/keras_config.h"
#include "io/model_file/keras_hdf5.h"
#include "io/model_file/optimizer_names.h"
#include "io/zip/reader.h"

namespace lockstep {
namespace {

Value read_json_member(const ZipReader& archive, std::string_view name) {
  const std::vector<std::byte> bytes = archive.read(name, max_config_bytes);
  return read_json_text(archive.path() + ": " + std::string(name), std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "Z13");
}

}  // namespace

StoredModel read_keras_zip(const std::string& path) {
  const ZipReader archive(path);
  const Value metadata = read_json_member(archive, "metadata.json");
  Value config = read_json_member(archive, "config.json");
  StoredModel versioned;
  const Value* version = metadata.find("keras_version");
  const std::string place = path + ": metadata.json";
  if (version == nullptr || !version->is_string()) throw Error("Z16", place, "keras_version is missing");
  set_keras_version(versioned, version->as_string(), "Z16", place);

  const std::string name = path + ": model.weights.h5";
  std::shared_ptr<const hdf5::WeightsFile> file;
  {
    const std::vector<std::byte> image = archive.read("model.weights.h5", std::numeric_limits<uint64_t>::max());
    file = std::make_shared<const hdf5::WeightsFile>(name, image);
  }
  StoredModel model = read_object_hdf5(std::move(file), versioned.semantics);
  model.file = path;
  model.format = "keras-zip";
  model.framework = versioned.framework;
  model.version = versioned.version;
  model.notes.insert(model.notes.begin(), versioned.notes.begin(), versioned.notes.end());
  for (const ZipReader::Member& member : archive.members()) {
    if (member.name.starts_with("assets/") && member.size > 0) model.notes.push_back("asset '" + printable(member.name) + "' is not read");
  }
  if (const Value* compile = config.find("compile_config"); compile != nullptr && compile->is_map()) {
    model.compile_config = compile_config_of(*compile);
    const Value* optimizer = model.compile_config->find("optimizer");
    const Value* class_name = optimizer != nullptr ? optimizer->find("class_name") : nullptr;
    if (model.optimizer && class_name != nullptr && class_name->is_string()) model.optimizer->class_name = class_name->as_string();
  }
  model.custom_objects = custom_classes_of(config);
  model.architecture = std::move(config);
  return model;
}

Value read_keras_zip_config(const std::string& path) { return read_json_member(ZipReader(path), "config.json"); }

}  // namespace lockstep
