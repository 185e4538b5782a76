#include "io/hdf5/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "core/error/error.h"
#include "io/hdf5/handle.h"

namespace lockstep {

struct Hdf5Writer::State {
  std::string path;       // empty in memory
  std::string temporary;  // what the file is called until it is whole
  hdf5::Handle file;
  // Kept open, because predictions come a batch at a time.
  std::map<std::string, hdf5::Handle> datasets;

  ~State() {
    datasets.clear();
    file = hdf5::Handle();
    if (!temporary.empty()) unlink(temporary.c_str());
  }
};

namespace {

void make_durable(const std::string& temporary, const std::string& path) {
  const int descriptor = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int reason = errno;
  if (descriptor >= 0) close(descriptor);
  if (!synced) throw Error("W40", path, std::string("cannot write the file: ") + std::strerror(reason));
  if (std::rename(temporary.c_str(), path.c_str()) != 0) throw Error("W40", path, std::string("cannot rename the finished file to its name: ") + std::strerror(errno));
}

}  // namespace

Hdf5Writer::Hdf5Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;
Hdf5Writer::~Hdf5Writer() = default;

Hdf5Writer Hdf5Writer::in_memory(std::string name) {
  auto state = std::make_unique<State>();
  state->file = hdf5::create_image(name);
  return Hdf5Writer(std::move(state));
}

Hdf5Writer Hdf5Writer::to_file(std::string path) {
  auto state = std::make_unique<State>();
  const std::string temporary = path + ".part" + std::to_string(getpid());
  state->path = std::move(path);
  state->file = hdf5::create_file(temporary);
  state->temporary = temporary;
  return Hdf5Writer(std::move(state));
}

void Hdf5Writer::group(const std::string& path) {
  // Component by component: asking for a link below a group that isn't there is an error in HDF5.
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (part != "/" && !hdf5::link_kind(state_->file, part)) hdf5::create_group(state_->file, part);
    if (end == std::string::npos) return;
  }
}

void Hdf5Writer::dataset(const std::string& path, const Tensor& values) { hdf5::create_dataset(state_->file, path, values.type(), values.bytes()); }

void Hdf5Writer::dataset(const std::string& path, const TensorType& type) {
  state_->datasets.insert_or_assign(path, hdf5::create_dataset(state_->file, path, type));
}

void Hdf5Writer::write_rows(const std::string& path, int64_t first, int64_t count, std::span<const std::byte> values) {
  auto found = state_->datasets.find(path);
  if (found == state_->datasets.end()) found = state_->datasets.emplace(path, hdf5::open_dataset(state_->file, path)).first;
  hdf5::write_rows(found->second, first, count, values);
}

void Hdf5Writer::attribute(const std::string& path, const std::string& name, std::string_view text) {
  hdf5::write_text(hdf5::open_object(state_->file, path), name, text);
}

void Hdf5Writer::attribute(const std::string& path, const std::string& name, std::span<const std::string> texts) {
  hdf5::write_texts(hdf5::open_object(state_->file, path), name, texts);
}

void Hdf5Writer::attribute(const std::string& path, const std::string& name, int64_t number) {
  const hdf5::Handle object = hdf5::open_object(state_->file, path);
  const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const hdf5::Handle attribute(H5Acreate2(object.id(), name.c_str(), H5T_STD_I64LE, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.id(), H5T_NATIVE_INT64, &number) < 0) {
    throw Error("W40", hdf5::place_of(object), "HDF5 cannot write attribute '" + name + "': " + hdf5::library_error());
  }
}

uint64_t Hdf5Writer::offset_of(const std::string& path) const {
  const hdf5::Handle dataset = hdf5::open_dataset(state_->file, path);
  const haddr_t address = H5Dget_offset(dataset.id());
  if (address == HADDR_UNDEF) throw Error("X01", hdf5::place_of(dataset), "has no values that lie in the file");
  return address;
}

std::vector<std::byte> Hdf5Writer::finish() {
  state_->datasets.clear();
  std::vector<std::byte> bytes;
  if (state_->temporary.empty()) {
    bytes = hdf5::image_of(state_->file);
    state_->file.close();
  } else {
    state_->file.close();
    make_durable(state_->temporary, state_->path);
    state_->temporary.clear();
  }
  return bytes;
}

}  // namespace lockstep
