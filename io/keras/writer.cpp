#include "io/keras/writer.h"

#include <span>
#include <utility>

#include "io/hdf5/writer.h"
#include "io/json/json.h"
#include "io/zip/writer.h"

namespace lockstep {

namespace {

constexpr std::string_view date_saved = "1980-01-01@00:00:00";

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

KerasFile write_keras_weights(const std::string& name, const std::vector<KerasObject>& objects) {
  Hdf5Writer writer = Hdf5Writer::in_memory(name);
  KerasFile file;
  for (const KerasObject& object : objects) {
    const std::string group = (object.path.empty() ? "" : "/" + object.path) + "/vars";
    writer.group(group);
    if (!object.name.empty()) writer.attribute(group, "name", object.name);
    std::vector<uint64_t>& offsets = file.offsets.emplace_back();
    for (size_t i = 0; i < object.variables.size(); ++i) {
      const std::string path = group + "/" + std::to_string(i);
      writer.dataset(path, object.variables[i]);
      offsets.push_back(object.variables[i].elements() > 0 ? writer.offset_of(path) : 0);
    }
  }
  file.bytes = writer.finish();
  return file;
}

KerasFile write_keras(const KerasArchive& archive) {
  KerasFile weights = write_keras_weights("model.weights.h5", archive.objects);
  Value metadata;
  metadata.set("keras_version", archive.keras_version);
  metadata.set("date_saved", date_saved);
  const std::string metadata_text = write_json(metadata);
  const std::string config_text = write_json(archive.config);

  constexpr size_t room_for_headers = 1024;
  ZipWriter zip(weights.bytes.size() + config_text.size() + metadata_text.size() + room_for_headers);
  zip.add("metadata.json", bytes_of(metadata_text));
  zip.add("config.json", bytes_of(config_text));
  const uint64_t start = zip.add("model.weights.h5", weights.bytes);
  for (size_t i = 0; i < archive.objects.size(); ++i) {
    for (size_t j = 0; j < weights.offsets[i].size(); ++j) {
      if (archive.objects[i].variables[j].elements() > 0) weights.offsets[i][j] += start;
    }
  }
  return {zip.finish(), std::move(weights.offsets)};
}

}  // namespace lockstep
