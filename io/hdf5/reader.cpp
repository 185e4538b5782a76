#include "io/hdf5/reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/model_file/input_file.h"

namespace lockstep::hdf5 {
namespace {

constexpr size_t max_depth = 32;
constexpr size_t max_objects = 100000;
constexpr int max_rank = 8;
constexpr uint64_t max_chunk_bytes = uint64_t{1} << 30;
constexpr size_t max_text_bytes = size_t{8} << 20;
// Deflate can't do better than 1032:1.
constexpr uint64_t max_expansion = 1100;
constexpr uint8_t newest_superblock = 3;
constexpr std::array<char, 8> signature = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};

bool is_signature(const std::array<char, 9>& bytes) { return std::equal(signature.begin(), signature.end(), bytes.begin()); }

std::string beginning_of(const InputFile& file) {
  std::string start(std::min<uint64_t>(file.size(), 24), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  for (char& byte : start) {
    if (static_cast<unsigned char>(byte) >= 0x7f || static_cast<unsigned char>(byte) < 0x20) byte = '.';
  }
  return start;
}

// HDF5's own reason decides what is wrong with a file that it can't open.
[[noreturn]] void explain_opening(const Error& error, const std::string& name) {
  const std::string& reason = error.problems().front().message;
  for (const auto& [words, code, message] : std::initializer_list<std::array<std::string_view, 3>>{
           {"truncated file", "H03", "the HDF5 file is truncated"},
           {"already open", "H06", "another process is writing this file, or it was not closed"},
           {"lock file", "H06", "another process is writing this file; see HDF5_USE_FILE_LOCKING"}}) {
    if (reason.find(words) != std::string::npos) throw Error(std::string(code), name, fmt::format("{} ({})", message, reason));
  }
  throw Error("H35", name, fmt::format("the HDF5 file is damaged: {}", reason));
}

std::string class_name(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "compounds";
    case H5T_REFERENCE:
      return "references";
    case H5T_ENUM:
      return "an enumeration";
    case H5T_VLEN:
      return "sequences of variable length";
    case H5T_ARRAY:
      return "arrays";
    case H5T_OPAQUE:
      return "opaque bytes";
    case H5T_BITFIELD:
      return "bit fields";
    case H5T_TIME:
      return "times";
    default:
      return "numbers of a format that isn't known";
  }
}

}  // namespace

std::optional<uint64_t> signature_offset(const std::string& path) {
  const InputFile file(path, "H01");
  for (uint64_t offset = 0; offset + 9 <= file.size(); offset = offset == 0 ? 512 : offset * 2) {
    std::array<char, 9> bytes{};
    file.read_at(offset, std::as_writable_bytes(std::span(bytes)));
    if (is_signature(bytes)) return offset;
  }
  return std::nullopt;
}

WeightsFile::WeightsFile(const std::string& path) : name_(path) {
  uint64_t size = 0;
  {
    const InputFile file(path, "H01");
    size = file.size();
    if (size == 0) throw Error("H02", path, "the file is empty: not an HDF5 file");
    const auto offset = signature_offset(path);
    if (!offset) throw Error("H01", path, fmt::format("is not an HDF5 file: its signature is missing; it starts with '{}'", beginning_of(file)));
    if (*offset > 0) notes_.push_back(fmt::format("{} bytes in front of the HDF5 signature were skipped", *offset));
    uint8_t version = 0;
    file.read_at(*offset + 8, std::as_writable_bytes(std::span(&version, 1)));
    if (version > newest_superblock) throw Error("H04", path, fmt::format("needs a newer HDF5 than 1.10 (superblock version {})", version));
  }
  try {
    file_ = open_file(path);
  } catch (const Error& error) {
    explain_opening(error, path);
  }
  check_links(size);
}

WeightsFile::WeightsFile(const std::string& name, std::span<const std::byte> image) : name_(name) {
  std::array<char, 9> bytes{};
  if (image.size() < bytes.size()) throw Error("H02", name, "is empty or too short to be an HDF5 file");
  std::memcpy(bytes.data(), image.data(), bytes.size());
  if (!is_signature(bytes)) throw Error("H01", name, "is not an HDF5 file: its signature is missing");
  try {
    file_ = open_image(name, image);
  } catch (const Error& error) {
    explain_opening(error, name);
  }
  check_links(image.size());
}

void WeightsFile::fail(const std::string& code, const std::string& path, const std::string& message) const {
  throw Error(code, fmt::format("{}: {}", name_, printable(path)), message);
}

void WeightsFile::check_links(uint64_t file_bytes) {
  file_bytes_ = file_bytes;
  const Handle root = open_group(file_, "/");
  std::vector<uint64_t> ancestors;
  size_t objects = 0;
  enter(root, "/", ancestors, objects);
}

void WeightsFile::enter(const Handle& group, const std::string& path, std::vector<uint64_t>& ancestors, size_t& objects) {
  groups_.insert(path);
  ancestors.push_back(info_of(group).address);
  if (ancestors.size() > max_depth) fail("H26", path, fmt::format("groups nest deeper than {} levels", max_depth));
  for (const Link& link : links_of(group, max_objects)) {
    const std::string below = (path == "/" ? "" : path) + "/" + link.name;
    if (++objects > max_objects) fail("H26", below, fmt::format("the file has more than {} objects", max_objects));
    if (link.kind == LinkKind::external) fail("H07", below, "is an external link, into another file: refused");
    if (link.kind == LinkKind::soft) fail("H08", below, "is a symbolic link: refused");
    if (link.kind == LinkKind::other) fail("H08", below, "is a link of an unknown kind: refused");
    const Handle object = open_object(group, link.name);
    const ObjectInfo info = info_of(object);
    if (info.kind == ObjectKind::dataset) datasets_.insert(below);
    if (info.kind != ObjectKind::group) continue;
    if (std::find(ancestors.begin(), ancestors.end(), info.address) != ancestors.end()) fail("H25", below, "leads back to a group that holds it: a cycle of hard links");
    enter(object, below, ancestors, objects);
  }
  ancestors.pop_back();
}

TensorType WeightsFile::type_of(const std::string& path) const {
  const Handle dataset = open_dataset(file_, path);
  const Handle properties = creation_properties_of(dataset);
  const H5D_layout_t layout = H5Pget_layout(properties.id());
  if (layout == H5D_VIRTUAL) fail("H10", path, "is a virtual dataset, made of other files: refused");
  if (H5Pget_external_count(properties.id()) > 0) fail("H09", path, "keeps its data in an external file: refused");
  const Handle type = hdf5::type_of(dataset);
  const auto dtype = dtype_of(type);
  if (!dtype) fail("H14", path, fmt::format("its elements have the type {}; numbers were expected", class_name(H5Tget_class(type.id()))));
  const Handle space = space_of(dataset);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank > max_rank) fail("H18", path, fmt::format("has {} dimensions; the limit is {}", rank, max_rank));
  const Shape shape = shape_of(dataset);
  const TensorType result{*dtype, shape};
  const std::string shown = text_of(shape);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) fail("H17", path, fmt::format("its shape {} has a dimension of length 0", shown));

  // A chunk that was never written isn't in the file, and reads as zeros.
  bool is_complete = true;
  if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(static_cast<size_t>(std::max(rank, 1)));
    if (H5Pget_chunk(properties.id(), rank, chunk.data()) < 0) fail("H35", path, "its chunks are damaged");
    uint64_t chunk_bytes = H5Tget_size(type.id());
    uint64_t expected = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (chunk[axis] == 0) fail("H35", path, "its chunks are damaged");
      if (__builtin_mul_overflow(chunk_bytes, chunk[axis], &chunk_bytes) || chunk_bytes > max_chunk_bytes) {
        fail("H19", path, "its chunk is larger than the limit of 1 GiB");
      }
      expected *= (static_cast<uint64_t>(shape[axis]) + chunk[axis] - 1) / chunk[axis];
    }
    hsize_t found = 0;
    if (H5Dget_num_chunks(dataset.id(), space.id(), &found) < 0) fail("H35", path, "its chunks are damaged: " + library_error());
    is_complete = found == expected;
  } else {
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    if (H5Dget_space_status(dataset.id(), &status) < 0) fail("H35", path, "its storage is damaged: " + library_error());
    is_complete = status == H5D_SPACE_STATUS_ALLOCATED;
  }
  const int filters = H5Pget_nfilters(properties.id());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties.id(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
    // A filter marked optional is skipped when it is not available, and zeros are read.
    if (H5Zfilter_avail(filter) <= 0) fail("H21", path, fmt::format("needs filter {}, which is not available", static_cast<int>(filter)));
  }
  const uint64_t stored = H5Dget_storage_size(dataset.id());
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(elements_of(shape)), static_cast<uint64_t>(size_of(*dtype)), &bytes)) fail("H12", path, fmt::format("its shape {} overflows 64 bits of bytes", shown));
  if (filters == 0 && bytes > file_bytes_) fail("H11", path, fmt::format("its shape {} declares {}, but the file has {}", shown, text_of_bytes(bytes), text_of_bytes(file_bytes_)));
  if (!is_complete) fail("H23", path, fmt::format("has no stored values, or not all, for its shape {}; they would load as zeros", shown));
  if (stored > file_bytes_) fail("H11", path, fmt::format("says that it is stored in {}, but the file has {}", text_of_bytes(stored), text_of_bytes(file_bytes_)));
  if (stored < bytes / max_expansion) fail("H20", path, fmt::format("{} would expand to {} for its shape {}", text_of_bytes(stored), text_of_bytes(bytes), shown));
  return result;
}

void WeightsFile::read(const std::string& path, std::span<std::byte> into) const {
  const Handle dataset = open_dataset(file_, path);
  try {
    read_values(dataset, into);
  } catch (const Error& error) {
    if (error.problems().front().code != "H40") throw;
    fail("H22", path, "is damaged (checksum or compressed data): " + error.problems().front().message);
  }
}

std::optional<std::string> WeightsFile::text(const std::string& path, const std::string& attribute) const {
  const Handle group = open_group(file_, path);
  if (!has_attribute(group, attribute)) return std::nullopt;
  std::string text = read_text(group, attribute);
  if (text.size() > max_text_bytes) fail("H27", path, fmt::format("attribute {} is {}; the limit is {}", attribute, text_of_bytes(text.size()), text_of_bytes(max_text_bytes)));
  return text;
}

std::optional<std::vector<std::string>> WeightsFile::texts(const std::string& path, const std::string& attribute) const {
  const Handle group = open_group(file_, path);
  if (has_attribute(group, attribute)) return read_texts(group, attribute);
  std::vector<std::string> texts;
  size_t part = 0;
  for (; has_attribute(group, attribute + std::to_string(part)); ++part) {
    for (std::string& text : read_texts(group, attribute + std::to_string(part))) texts.push_back(std::move(text));
  }
  // A part behind a gap would be lost without a word.
  for (const std::string& name : attribute_names(group)) {
    if (!name.starts_with(attribute) || name.size() == attribute.size()) continue;
    const std::string number = name.substr(attribute.size());
    if (!std::all_of(number.begin(), number.end(), [](unsigned char digit) { return std::isdigit(digit) != 0; })) continue;
    if (number.size() > 6 || std::stoul(number) >= part) fail("H28", path, fmt::format("attribute {} is there, but {}{} is missing", printable(name), attribute, part));
  }
  if (part == 0) return std::nullopt;
  return texts;
}

}  // namespace lockstep::hdf5
