#include "io/checkpoint/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/error/error.h"
#include "io/json/json.h"

namespace lockstep {

void FileRecord::fields(Fields& fields) {
  fields.add("name", name, "name of the file").require();
  fields.add("bytes", bytes, "its size").require().at_least(0);
  fields.add("hash", hash, "XXH3-64 of its bytes").require();
}

void TensorRecord::fields(Fields& fields) {
  fields.add("name", name, "name of the tensor").require();
  fields.add("dtype", dtype, "type of its elements").require();
  fields.add("shape", shape, "its axes").require();
  fields.add("hash", hash, "XXH3-64 of its bytes").require();
  fields.add("file", file, "the file in which its bytes lie in one piece");
  fields.add("offset", offset, "where in the file they start").at_least(0);
}

void Manifest::fields(Fields& fields) {
  fields.add("format", format, "format of the folder").require();
  fields.add("step", step, "step of the run").require().at_least(0);
  fields.add("files", files, "every file but this one").require();
  fields.add("tensors", tensors, "every tensor").require();
  fields.add("facts", facts, "what the bits of a run depend on").require();
}

const FileRecord* Manifest::find(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(), [&](const FileRecord& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

TensorRecord record_of(std::string name, const Tensor& tensor, std::string file, uint64_t offset) {
  return {std::move(name), std::string(name_of(tensor.dtype())), tensor.shape(), hash_of(tensor.bytes()), std::move(file), static_cast<int64_t>(offset)};
}

namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view hash_opening = ",\n  \"hash\": \"";
constexpr std::string_view hash_closing = "\"\n}\n";
constexpr size_t hash_digits = 16;
// A manifest has some 200 bytes a tensor; this is a million of them.
constexpr int64_t max_manifest_bytes = int64_t{256} << 20;

std::string hash_text(std::string_view text) { return hash_of(std::as_bytes(std::span(text))); }

void strip_right(std::string& text) { text.erase(text.find_last_not_of(white_space) + 1); }

/// A descriptor of a regular file right below a folder, closed at the end.
class OpenedFile {
 public:
  OpenedFile(const std::string& folder, const std::string& checkpoint, const std::string& name) : name_(name), checkpoint_(checkpoint) {
    const std::string path = folder + "/" + name;
    // Non-blocking, because a pipe under this name would wait for its other end.
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file_ < 0) {
      const int reason = errno;
      if (reason == ELOOP) throw Damage{"C10", checkpoint + "/" + printable(name) + " is a symbolic link", "a checkpoint holds its files itself"};
      const bool manifest = name == manifest_name;
      throw Damage{manifest ? "C01" : "C05", checkpoint + " is incomplete", reason == ENOENT ? name + " is missing" : name + " cannot be opened: " + std::strerror(reason)};
    }
    struct stat status;
    if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(file_);
      throw Damage{"C10", checkpoint + "/" + printable(name) + " is not a regular file", ""};
    }
    size_ = status.st_size;
  }
  ~OpenedFile() { close(file_); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  int64_t size() const { return size_; }

  /// Calls `visit` with all bytes from `offset` on, at most `count`, in order. False when the file ends before.
  template <class Visit>
  bool read(int64_t offset, int64_t count, Visit&& visit) const {
    std::vector<std::byte> block(static_cast<size_t>(std::clamp<int64_t>(count, 1, int64_t{1} << 20)));
    while (count > 0) {
      const ssize_t got = pread(file_, block.data(), static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(block.size()))), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Damage{"C02", checkpoint_ + "/" + name_ + " cannot be read", std::strerror(errno)};
      if (got == 0) return false;
      visit(std::span<const std::byte>(block).first(static_cast<size_t>(got)));
      offset += got;
      count -= got;
    }
    return true;
  }

  std::string hash(int64_t offset, int64_t count) const {
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
    if (!state) throw std::bad_alloc();
    XXH3_64bits_reset(state.get());
    const bool whole = read(offset, count, [&](std::span<const std::byte> bytes) { XXH3_64bits_update(state.get(), bytes.data(), bytes.size()); });
    return whole ? fmt::format("{:016x}", XXH3_64bits_digest(state.get())) : std::string();
  }

  std::string text() const {
    std::string result;
    read(0, size_, [&](std::span<const std::byte> bytes) { result.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
    return result;
  }

 private:
  int file_ = -1;
  int64_t size_ = 0;
  const std::string& name_;
  const std::string& checkpoint_;
};

Damage garbled(const std::string& checkpoint, const std::string& detail) { return {"C01", checkpoint + " is incomplete", detail}; }

bool plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

Manifest read_manifest(const std::string& folder, const std::string& checkpoint) {
  const std::string file_name(manifest_name);
  const OpenedFile file(folder, checkpoint, file_name);
  if (file.size() > max_manifest_bytes) throw garbled(checkpoint, fmt::format("manifest.json has {} bytes", file.size()));
  const std::string text = file.text();
  constexpr size_t ending = hash_opening.size() + hash_digits + hash_closing.size();
  if (text.size() <= ending) throw garbled(checkpoint, "manifest.json is cut short");
  const std::string_view body = std::string_view(text).substr(0, text.size() - ending);
  if (std::string_view(text).substr(body.size()) != fmt::format("{}{}{}", hash_opening, hash_text(body), hash_closing)) {
    throw garbled(checkpoint, "manifest.json is not as it was written (its hash is another)");
  }
  try {
    Value tree = read_json_text(checkpoint + "/manifest.json", text, "C01");
    const int64_t format = tree.at("format").as_integer();
    if (format > checkpoint_format) {
      throw Damage{"C03", fmt::format("{} was written by format {}, this program reads <= {}", checkpoint, format, checkpoint_format), "use the newer lockstep"};
    }
    tree.erase("hash");
    return read_described<Manifest>(tree, "");
  } catch (const Error& error) {
    throw garbled(checkpoint, "manifest.json: " + error.problems().front().message);
  }
}

/// Which tensors of a damaged file are hit.
std::string damaged_tensors(const Manifest& manifest, const OpenedFile& file, const std::string& name) {
  std::string list;
  for (const TensorRecord& tensor : manifest.tensors) {
    if (tensor.file != name) continue;
    const auto dtype = dtype_from_name(tensor.dtype);
    if (!dtype) continue;
    const int64_t bytes = static_cast<int64_t>(TensorType{*dtype, tensor.shape}.bytes());
    if (bytes == 0 || file.hash(tensor.offset, bytes) == tensor.hash) continue;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", printable(tensor.name));
  }
  return list;
}

void verify_file(const std::string& folder, const std::string& checkpoint, const Manifest& manifest, const FileRecord& record) {
  const OpenedFile file(folder, checkpoint, record.name);
  const bool whole = file.size() == record.bytes;
  if (whole && file.hash(0, record.bytes) == record.hash) return;
  const std::string tensors = damaged_tensors(manifest, file, record.name);
  const std::string what = tensors.empty() ? "" : (tensors.find(',') == std::string::npos ? ": tensor " : ": tensors ") + tensors;
  throw Damage{"C02", fmt::format("{}/{}{} damaged", checkpoint, record.name, what), whole ? "" : fmt::format("it has {} bytes instead of {}", file.size(), record.bytes)};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  // Without its last brace it is what the hash covers.
  std::string text = write_json(FieldType<Manifest>::write(manifest), 2);
  strip_right(text);
  text.pop_back();
  strip_right(text);
  return fmt::format("{}{}{}{}", text, hash_opening, hash_text(text), hash_closing);
}

Verified read_checkpoint(const std::string& folder, const std::string& name) {
  Verified result{read_manifest(folder, name), {}};
  for (const FileRecord& file : result.manifest.files) {
    if (!plain_name(file.name)) {
      throw Damage{"C10", fmt::format("{}: the manifest names '{}', which is outside the folder", name, printable(file.name)), "the checkpoint was not written by lockstep"};
    }
  }
  for (const FileRecord& file : result.manifest.files) verify_file(folder, name, result.manifest, file);
  if (result.manifest.find(state_name) != nullptr) {
    const std::string state(state_name);
    try {
      result.state = read_json_text(name + "/" + state, OpenedFile(folder, name, state).text(), "C01");
    } catch (const Error& error) {
      throw garbled(name, "state.json: " + error.problems().front().message);
    }
  }
  return result;
}

}  // namespace lockstep
