#include "io/hdf5/handle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace lockstep::hdf5 {
namespace {

constexpr size_t max_name = 1024;
// An attribute in an object header must fit in 64 KiB with room for the header itself; Keras splits at this size.
constexpr size_t max_attribute_bytes = 64512;

// Once a process: no plug-ins. Once a thread (HDF5 keeps an error stack for each): no printing.
void prepare() {
  static const bool plugins_off = [] {
    H5open();
    H5PLset_loading_state(0);
    return true;
  }();
  thread_local const bool silent = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(plugins_off);
  static_cast<void>(silent);
}

std::string place_below(const Handle& parent, const std::string& path) {
  std::string place = place_of(parent);
  // A file's own place ends with its name, a group's with its path.
  const bool is_root = place.find(": /") == std::string::npos;
  if (is_root)
    place += path.starts_with('/') ? ": " : ": /";
  else if (!path.starts_with('/'))
    place += "/";
  return place + printable(path);
}

[[noreturn]] void fail(std::string code, std::string place, const std::string& what, const std::string& reason) {
  throw Error(std::move(code), std::move(place), "HDF5 cannot " + what + (reason.empty() ? "" : ": " + reason));
}

// The reason comes first each time: asking for a place calls HDF5, and every call empties its error stack.
[[noreturn]] void fail_reading(const Handle& object, const std::string& what) {
  const std::string reason = library_error();
  fail("H40", place_of(object), what, reason);
}

[[noreturn]] void fail_reading(const std::string& place, const std::string& what) { fail("H40", place, what, library_error()); }

[[noreturn]] void fail_reading(const Handle& parent, const std::string& path, const std::string& what) {
  const std::string reason = library_error();
  fail("H40", place_below(parent, path), what, reason);
}

[[noreturn]] void fail_writing(const Handle& object, const std::string& what) {
  const std::string reason = library_error();
  fail("W40", place_of(object), what, reason);
}

[[noreturn]] void fail_writing(const std::string& place, const std::string& what) { fail("W40", place, what, library_error()); }

[[noreturn]] void fail_writing(const Handle& parent, const std::string& path, const std::string& what) {
  const std::string reason = library_error();
  fail("W40", place_below(parent, path), what, reason);
}

// For property lists, spaces and types, which fail only when memory is short.
Handle owned(hid_t id, Handle::Close close) {
  if (id < 0) fail_reading(std::string(), "allocate an identifier");
  return Handle(id, close);
}

Handle untimed(hid_t property_class) {
  Handle properties = owned(H5Pcreate(property_class), H5Pclose);
  H5Pset_obj_track_times(properties.id(), false);
  return properties;
}

Handle with_parents() {
  Handle properties = owned(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(properties.id(), 1);
  H5Pset_char_encoding(properties.id(), H5T_CSET_UTF8);
  return properties;
}

Handle copied(hid_t type) { return owned(H5Tcopy(type), H5Tclose); }

Handle half_type() {
  Handle type = copied(H5T_IEEE_F32LE);
  H5Tset_fields(type.id(), 15, 10, 5, 0, 10);
  H5Tset_size(type.id(), 2);
  H5Tset_ebias(type.id(), 15);
  return type;
}

Handle boolean_type() {
  Handle type = owned(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const int8_t no = 0;
  const int8_t yes = 1;
  H5Tenum_insert(type.id(), "FALSE", &no);
  H5Tenum_insert(type.id(), "TRUE", &yes);
  return type;
}

// Files hold little-endian bytes, as does every machine that this is built for.
Handle hdf5_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return boolean_type();
    case DType::u8:
      return copied(H5T_STD_U8LE);
    case DType::u16:
      return copied(H5T_STD_U16LE);
    case DType::u32:
      return copied(H5T_STD_U32LE);
    case DType::u64:
      return copied(H5T_STD_U64LE);
    case DType::i8:
      return copied(H5T_STD_I8LE);
    case DType::i16:
      return copied(H5T_STD_I16LE);
    case DType::i32:
      return copied(H5T_STD_I32LE);
    case DType::i64:
      return copied(H5T_STD_I64LE);
    case DType::f16:
      return half_type();
    case DType::bf16:
      return owned(H5Tcreate(H5T_OPAQUE, 2), H5Tclose);
    case DType::f32:
      return copied(H5T_IEEE_F32LE);
    case DType::f64:
      return copied(H5T_IEEE_F64LE);
  }
  return copied(H5T_IEEE_F32LE);
}

// What H5Dread converts to: bytes that HDF5 can't convert (opaque, enumerations) stay as they are.
Handle memory_type(const Handle& dataset) {
  Handle stored = type_of(dataset);
  const H5T_class_t kind = H5Tget_class(stored.id());
  if (kind == H5T_OPAQUE || kind == H5T_ENUM) return stored;
  const auto dtype = dtype_of(stored);
  if (!dtype) throw Error("H14", place_of(dataset), "holds elements that are no numbers");
  return hdf5_type(*dtype);
}

struct Rows {
  Handle memory;
  Handle file;
};

Rows rows_of(const Handle& dataset, int64_t first, int64_t count, size_t bytes, size_t element) {
  const Shape shape = shape_of(dataset);
  Handle file = space_of(dataset);
  const int64_t rows = shape.empty() ? 1 : shape[0];
  if (first < 0 || count < 0 || first > rows - count) {
    throw Error("X02", place_of(dataset), "rows " + std::to_string(first) + " to " + std::to_string(first + count) + " of " + std::to_string(rows));
  }
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> size(shape.begin(), shape.end());
  if (!shape.empty()) {
    start[0] = static_cast<hsize_t>(first);
    size[0] = static_cast<hsize_t>(count);
    if (count == 0)
      H5Sselect_none(file.id());
    else if (H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr) < 0)
      fail_reading(dataset, "select rows");
  }
  hsize_t elements = 1;
  for (const hsize_t axis : size) elements *= axis;
  if (elements * element != bytes) {
    throw Error("X02", place_of(dataset), "rows of " + std::to_string(elements * element) + " bytes meet a buffer of " + std::to_string(bytes));
  }
  return {owned(H5Screate_simple(1, &elements, nullptr), H5Sclose), std::move(file)};
}

struct Links {
  std::vector<Link> links;
  size_t limit;
  bool too_many = false;
  bool too_long = false;
};

LinkKind kind_of(H5L_type_t type) {
  switch (type) {
    case H5L_TYPE_HARD:
      return LinkKind::hard;
    case H5L_TYPE_SOFT:
      return LinkKind::soft;
    case H5L_TYPE_EXTERNAL:
      return LinkKind::external;
    default:
      return LinkKind::other;
  }
}

herr_t keep_link(hid_t, const char* name, const H5L_info_t* info, void* data) noexcept {
  auto& links = *static_cast<Links*>(data);
  links.too_many = links.links.size() >= links.limit;
  links.too_long = std::strlen(name) > max_name;
  if (links.too_many || links.too_long) return 1;
  links.links.push_back({name, kind_of(info->type)});
  return 0;
}

herr_t keep_name(hid_t, const char* name, const H5A_info_t*, void* data) noexcept {
  static_cast<std::vector<std::string>*>(data)->emplace_back(name);
  return 0;
}

herr_t keep_reason(unsigned, const H5E_error2_t* error, void* data) noexcept {
  auto& reason = *static_cast<std::string*>(data);
  if (reason.empty() && error->desc != nullptr) reason = error->desc;
  return 0;
}

Handle open_attribute(const Handle& object, const std::string& name) {
  Handle attribute(H5Aopen(object.id(), name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute) fail_reading(object, "open attribute '" + printable(name) + "'");
  return attribute;
}

// The strings of an attribute's buffer, which the library allocates for those of variable length.
std::vector<std::string> strings_of(const Handle& object, const std::string& name, const Handle& attribute, size_t count) {
  Handle type = owned(H5Aget_type(attribute.id()), H5Tclose);
  std::vector<std::string> texts;
  texts.reserve(count);
  if (H5Tis_variable_str(type.id()) > 0) {
    Handle space = owned(H5Aget_space(attribute.id()), H5Sclose);
    std::vector<char*> pointers(count, nullptr);
    const herr_t read = H5Aread(attribute.id(), type.id(), pointers.data());
    if (read < 0) fail_reading(object, "read attribute '" + printable(name) + "'");
    for (const char* pointer : pointers) texts.emplace_back(pointer == nullptr ? "" : pointer);
    H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, pointers.data());
    return texts;
  }
  const size_t length = H5Tget_size(type.id());
  std::vector<char> bytes(length * count);
  if (H5Aread(attribute.id(), type.id(), bytes.data()) < 0) fail_reading(object, "read attribute '" + printable(name) + "'");
  for (size_t i = 0; i < count; ++i) {
    std::string text(bytes.data() + i * length, length);
    // Padded with NUL, or with spaces where the type says so.
    const char padding = H5Tget_strpad(type.id()) == H5T_STR_SPACEPAD ? ' ' : '\0';
    if (padding == '\0')
      text.resize(std::strlen(text.c_str()));
    else
      text.resize(text.find_last_not_of(' ') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

size_t attribute_elements(const Handle& object, const std::string& name, const Handle& attribute) {
  Handle space = owned(H5Aget_space(attribute.id()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  const hsize_t stored = H5Aget_storage_size(attribute.id());
  // An attribute lies in one message; a count beyond its bytes is a lie.
  if (count < 0 || static_cast<hsize_t>(count) > stored) {
    throw Error("H28", place_of(object), "attribute '" + printable(name) + "' has more elements than bytes");
  }
  return static_cast<size_t>(count);
}

void write_fixed_texts(const Handle& object, const std::string& name, std::span<const std::string> texts, size_t length) {
  Handle type = copied(H5T_C_S1);
  H5Tset_size(type.id(), length);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  const hsize_t count = texts.size();
  Handle space = owned(H5Screate_simple(1, &count, nullptr), H5Sclose);
  std::vector<char> bytes(length * texts.size(), '\0');
  for (size_t i = 0; i < texts.size(); ++i) std::memcpy(bytes.data() + i * length, texts[i].data(), texts[i].size());
  Handle attribute(H5Acreate2(object.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.id(), type.id(), bytes.data()) < 0) fail_writing(object, "write attribute '" + name + "'");
}

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    if (id_ >= 0) close_(id_);
    id_ = std::exchange(other.id_, H5I_INVALID_HID);
    close_ = other.close_;
  }
  return *this;
}

Handle::~Handle() {
  if (id_ >= 0) close_(id_);
}

void Handle::close() {
  if (id_ < 0) return;
  const std::string place = place_of(*this);
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  if (close_(id) < 0) fail_writing(place, "finish and close the file");
}

std::string place_of(const Handle& object) {
  std::string file;
  const ssize_t length = H5Fget_name(object.id(), nullptr, 0);
  if (length > 0) {
    file.resize(static_cast<size_t>(length) + 1);
    H5Fget_name(object.id(), file.data(), file.size());
    file.resize(static_cast<size_t>(length));
  }
  std::string path;
  const ssize_t path_length = H5Iget_name(object.id(), nullptr, 0);
  if (path_length > 1) {
    path.resize(static_cast<size_t>(path_length) + 1);
    H5Iget_name(object.id(), path.data(), path.size());
    path.resize(static_cast<size_t>(path_length));
  }
  H5Eclear2(H5E_DEFAULT);
  return path.empty() ? file : file + ": " + printable(path);
}

std::string library_error() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  H5Eclear2(H5E_DEFAULT);
  return printable(reason);
}

Handle open_file(const std::string& path) {
  prepare();
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file) fail_reading(path, "open the file");
  return file;
}

Handle open_image(const std::string& name, std::span<const std::byte> bytes) {
  prepare();
  Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), 1 << 20, false);
  // HDF5 takes a pointer to non-const and copies from it.
  if (H5Pset_file_image(access.id(), const_cast<std::byte*>(bytes.data()), bytes.size()) < 0) fail_reading(name, "take the bytes");
  Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!file) fail_reading(name, "open the file");
  return file;
}

Handle create_file(const std::string& path) {
  prepare();
  Handle creation = untimed(H5P_FILE_CREATE);
  Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_SEMI);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  if (!file) fail_writing(path, "create the file");
  return file;
}

Handle create_image(const std::string& name) {
  prepare();
  Handle creation = untimed(H5P_FILE_CREATE);
  Handle access = owned(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_SEMI);
  H5Pset_fapl_core(access.id(), 1 << 20, false);
  Handle file(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  if (!file) fail_writing(name, "create a file in memory");
  return file;
}

std::vector<std::byte> image_of(const Handle& file) {
  if (H5Fflush(file.id(), H5F_SCOPE_GLOBAL) < 0) fail_writing(file, "flush the file");
  const ssize_t size = H5Fget_file_image(file.id(), nullptr, 0);
  if (size < 0) fail_writing(file, "size the file");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  if (H5Fget_file_image(file.id(), bytes.data(), bytes.size()) < 0) fail_writing(file, "copy the file");
  return bytes;
}

std::vector<Link> links_of(const Handle& group, size_t limit) {
  Links links{{}, limit};
  const herr_t status = H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_link, &links);
  if (links.too_many) throw Error("H26", place_of(group), "has more than " + std::to_string(limit) + " members");
  if (links.too_long) throw Error("H26", place_of(group), "has a member whose name is longer than 1 KiB");
  if (status < 0) fail_reading(group, "list the group");
  return std::move(links.links);
}

std::optional<LinkKind> link_kind(const Handle& group, const std::string& name) {
  const htri_t exists = H5Lexists(group.id(), name.c_str(), H5P_DEFAULT);
  if (exists < 0) fail_reading(group, "look for '" + printable(name) + "'");
  if (exists == 0) return std::nullopt;
  H5L_info_t info;
  if (H5Lget_info(group.id(), name.c_str(), &info, H5P_DEFAULT) < 0) fail_reading(group, "look at '" + printable(name) + "'");
  return kind_of(info.type);
}

Handle open_object(const Handle& parent, const std::string& path) {
  Handle object(H5Oopen(parent.id(), path.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object) fail_reading(parent, path, "open the object");
  return object;
}

ObjectInfo info_of(const Handle& object) {
  H5O_info_t info;
  if (H5Oget_info2(object.id(), &info, H5O_INFO_BASIC) < 0) fail_reading(object, "look at the object");
  const ObjectKind kind = info.type == H5O_TYPE_GROUP ? ObjectKind::group : info.type == H5O_TYPE_DATASET ? ObjectKind::dataset
                                                                                                          : ObjectKind::other;
  return {kind, info.addr};
}

Handle open_group(const Handle& parent, const std::string& path) {
  Handle group(H5Gopen2(parent.id(), path.c_str(), H5P_DEFAULT), H5Gclose);
  if (!group) fail_reading(parent, path, "open the group");
  return group;
}

Handle create_group(const Handle& parent, const std::string& path) {
  const Handle links = with_parents();
  const Handle creation = untimed(H5P_GROUP_CREATE);
  Handle group(H5Gcreate2(parent.id(), path.c_str(), links.id(), creation.id(), H5P_DEFAULT), H5Gclose);
  if (!group) fail_writing(parent, path, "create the group");
  return group;
}

Handle open_dataset(const Handle& parent, const std::string& path) {
  Handle dataset(H5Dopen2(parent.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset) fail_reading(parent, path, "open the data set");
  return dataset;
}

Handle create_dataset(const Handle& parent, const std::string& path, const TensorType& type) {
  const std::vector<hsize_t> axes(type.shape.begin(), type.shape.end());
  Handle space = axes.empty() ? owned(H5Screate(H5S_SCALAR), H5Sclose) : owned(H5Screate_simple(static_cast<int>(axes.size()), axes.data(), nullptr), H5Sclose);
  const Handle links = with_parents();
  const Handle creation = untimed(H5P_DATASET_CREATE);
  // Values follow at once or row by row: filling with zeros first would write everything twice.
  H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER);
  Handle dataset(H5Dcreate2(parent.id(), path.c_str(), hdf5_type(type.dtype).id(), space.id(), links.id(), creation.id(), H5P_DEFAULT), H5Dclose);
  if (!dataset) fail_writing(parent, path, "create the data set");
  if (type.dtype == DType::bf16) write_text(dataset, "dtype", "bfloat16");
  return dataset;
}

Handle create_dataset(const Handle& parent, const std::string& path, const TensorType& type, std::span<const std::byte> values) {
  Handle dataset = create_dataset(parent, path, type);
  write_rows(dataset, 0, type.shape.empty() ? 1 : type.shape[0], values);
  return dataset;
}

void write_rows(const Handle& dataset, int64_t first, int64_t count, std::span<const std::byte> values) {
  const Handle type = memory_type(dataset);
  const Rows rows = rows_of(dataset, first, count, values.size(), H5Tget_size(type.id()));
  if (H5Dwrite(dataset.id(), type.id(), rows.memory.id(), rows.file.id(), H5P_DEFAULT, values.data()) < 0) fail_writing(dataset, "write values");
}

Handle type_of(const Handle& dataset) {
  Handle type(H5Dget_type(dataset.id()), H5Tclose);
  if (!type) fail_reading(dataset, "read the element type");
  return type;
}

Handle space_of(const Handle& dataset) {
  Handle space(H5Dget_space(dataset.id()), H5Sclose);
  if (!space) fail_reading(dataset, "read the data space");
  return space;
}

Handle creation_properties_of(const Handle& dataset) {
  Handle properties(H5Dget_create_plist(dataset.id()), H5Pclose);
  if (!properties) fail_reading(dataset, "read how the data set is stored");
  return properties;
}

std::optional<DType> dtype_of(const Handle& type) {
  const size_t size = H5Tget_size(type.id());
  switch (H5Tget_class(type.id())) {
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type.id()) != H5T_SGN_NONE;
      if (H5Tget_precision(type.id()) != size * 8) return std::nullopt;
      if (size == 1) return is_signed ? DType::i8 : DType::u8;
      if (size == 2) return is_signed ? DType::i16 : DType::u16;
      if (size == 4) return is_signed ? DType::i32 : DType::u32;
      if (size == 8) return is_signed ? DType::i64 : DType::u64;
      return std::nullopt;
    }
    case H5T_FLOAT: {
      size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
      if (H5Tget_fields(type.id(), &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) return std::nullopt;
      if (size == 2 && exponent_bits == 5 && mantissa_bits == 10) return DType::f16;
      if (size == 4 && exponent_bits == 8 && mantissa_bits == 23) return DType::f32;
      if (size == 8 && exponent_bits == 11 && mantissa_bits == 52) return DType::f64;
      return std::nullopt;
    }
    case H5T_OPAQUE:
      return size == 2 ? std::optional(DType::bf16) : std::nullopt;
    case H5T_ENUM: {
      if (size != 1 || H5Tget_nmembers(type.id()) != 2) return std::nullopt;
      int8_t no = -1, yes = -1;
      H5Tenum_valueof(type.id(), "FALSE", &no);
      H5Tenum_valueof(type.id(), "TRUE", &yes);
      H5Eclear2(H5E_DEFAULT);
      return no == 0 && yes == 1 ? std::optional(DType::boolean) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

Shape shape_of(const Handle& dataset) {
  const Handle space = space_of(dataset);
  const H5S_class_t kind = H5Sget_simple_extent_type(space.id());
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) throw Error("H16", place_of(dataset), "has no data space, so no values");
  std::vector<hsize_t> axes(H5S_MAX_RANK);
  const int rank = H5Sget_simple_extent_dims(space.id(), axes.data(), nullptr);
  if (rank < 0) fail_reading(dataset, "read the shape");
  axes.resize(static_cast<size_t>(rank));
  hsize_t elements = 1;
  for (const hsize_t axis : axes) {
    constexpr hsize_t limit = std::numeric_limits<int64_t>::max();
    if (axis > limit || (axis != 0 && elements > limit / axis)) throw Error("H12", place_of(dataset), "its shape overflows 63 bits");
    elements *= axis;
  }
  return Shape(axes.begin(), axes.end());
}

void read_values(const Handle& dataset, std::span<std::byte> into) {
  const Shape shape = shape_of(dataset);
  read_rows(dataset, 0, shape.empty() ? 1 : shape[0], into);
}

void read_rows(const Handle& dataset, int64_t first, int64_t count, std::span<std::byte> into) {
  const Handle type = memory_type(dataset);
  const Rows rows = rows_of(dataset, first, count, into.size(), H5Tget_size(type.id()));
  if (H5Dread(dataset.id(), type.id(), rows.memory.id(), rows.file.id(), H5P_DEFAULT, into.data()) < 0) fail_reading(dataset, "read the values");
}

bool has_attribute(const Handle& object, const std::string& name) {
  const htri_t exists = H5Aexists(object.id(), name.c_str());
  if (exists < 0) fail_reading(object, "look for attribute '" + printable(name) + "'");
  return exists > 0;
}

std::vector<std::string> attribute_names(const Handle& object) {
  std::vector<std::string> names;
  if (H5Aiterate2(object.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep_name, &names) < 0) fail_reading(object, "list the attributes");
  return names;
}

std::string read_text(const Handle& object, const std::string& name) {
  const Handle attribute = open_attribute(object, name);
  const Handle type = owned(H5Aget_type(attribute.id()), H5Tclose);
  if (H5Tget_class(type.id()) != H5T_STRING || attribute_elements(object, name, attribute) != 1) {
    throw Error("H28", place_of(object), "attribute '" + printable(name) + "' is not one string");
  }
  return strings_of(object, name, attribute, 1)[0];
}

std::vector<std::string> read_texts(const Handle& object, const std::string& name) {
  const Handle attribute = open_attribute(object, name);
  const Handle type = owned(H5Aget_type(attribute.id()), H5Tclose);
  const size_t count = attribute_elements(object, name, attribute);
  if (count == 0) return {};
  if (H5Tget_class(type.id()) != H5T_STRING) throw Error("H28", place_of(object), "attribute '" + printable(name) + "' is not a list of strings");
  return strings_of(object, name, attribute, count);
}

void write_text(const Handle& object, const std::string& name, std::string_view text) {
  Handle type = copied(H5T_C_S1);
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  Handle space = owned(H5Screate(H5S_SCALAR), H5Sclose);
  Handle attribute(H5Acreate2(object.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const std::string terminated(text);
  const char* pointer = terminated.c_str();
  if (!attribute || H5Awrite(attribute.id(), type.id(), &pointer) < 0) fail_writing(object, "write attribute '" + name + "'");
}

void write_texts(const Handle& object, const std::string& name, std::span<const std::string> texts) {
  if (texts.empty()) {
    const hsize_t none = 0;
    Handle space = owned(H5Screate_simple(1, &none, nullptr), H5Sclose);
    Handle attribute(H5Acreate2(object.id(), name.c_str(), H5T_IEEE_F64LE, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!attribute) fail_writing(object, "write attribute '" + name + "'");
    return;
  }
  size_t length = 1;
  for (const std::string& text : texts) length = std::max(length, text.size());
  if (length > max_attribute_bytes) throw Error("W40", place_of(object), "attribute '" + name + "': a name of " + std::to_string(length) + " bytes doesn't fit");
  const size_t per_attribute = max_attribute_bytes / length;
  if (texts.size() <= per_attribute) return write_fixed_texts(object, name, texts, length);
  // As many parts as Keras makes: even ones, each below the limit.
  const size_t parts = (texts.size() + per_attribute - 1) / per_attribute;
  const size_t small = texts.size() / parts;
  const size_t larger_ones = texts.size() % parts;
  size_t first = 0;
  for (size_t part = 0; part < parts; ++part) {
    const size_t count = small + (part < larger_ones ? 1 : 0);
    write_fixed_texts(object, name + std::to_string(part), texts.subspan(first, count), length);
    first += count;
  }
}

}  // namespace lockstep::hdf5
