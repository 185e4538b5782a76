#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error/error.h"
#include "core/tensor/tensor.h"

/// The part of HDF5's C interface that io uses, checked. Internal to io: include it from .cpp files only.
/// Every call throws Error with HDF5's own reason in the message and "file: /object" as place: H40 where reading fails, W40 where writing does.
/// HDF5's printing of errors is off, and so are its plug-ins: a file can't make it load code.
namespace lockstep::hdf5 {

/// An owned HDF5 identifier of any kind: file, group, data set, attribute, type, space, property list.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = H5I_INVALID_HID; }
  Handle& operator=(Handle&& other) noexcept;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Closes now. For a file this is where the last bytes are written: throws W40 when that fails.
  void close();

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// "model.h5: /model_weights/hidden", or the file's name for its root.
std::string place_of(const Handle& object);
/// HDF5's innermost reason for the failure of this thread's last call: "unable to open file (errno = 2, ...)"; empties its error stack.
std::string library_error();

// Files. A name is kept as given and begins the place of every error.

/// Read-only.
Handle open_file(const std::string& path);
/// A file that is the bytes in memory, read-only; they are copied. `name` is for messages: "model.keras: model.weights.h5".
Handle open_image(const std::string& name, std::span<const std::byte> bytes);
/// A new, empty file; replaces what is there. Nothing that is created in it carries a time, so that bytes depend on contents alone.
Handle create_file(const std::string& path);
/// As create_file, in memory; `image_of` gives its bytes.
Handle create_image(const std::string& name);
std::vector<std::byte> image_of(const Handle& file);

// Groups and links. Paths may have several components.

enum class LinkKind { hard,
                      soft,
                      external,
                      other };
struct Link {
  std::string name;
  LinkKind kind = LinkKind::hard;
};
/// The links of a group in the order of their names. Throws H26 when there are more than `limit` or a name is longer than 1 KiB.
std::vector<Link> links_of(const Handle& group, size_t limit);
/// The kind of a link right below `group`, or nothing when there is none. Follows nothing.
std::optional<LinkKind> link_kind(const Handle& group, const std::string& name);

enum class ObjectKind { group,
                        dataset,
                        other };
struct ObjectInfo {
  ObjectKind kind = ObjectKind::other;
  uint64_t address = 0;  ///< the same for two links to one object
};
Handle open_object(const Handle& parent, const std::string& path);
ObjectInfo info_of(const Handle& object);
Handle open_group(const Handle& parent, const std::string& path);
/// Makes the groups on the way, too.
Handle create_group(const Handle& parent, const std::string& path);

// Data sets.

Handle open_dataset(const Handle& parent, const std::string& path);
/// A contiguous data set without values; makes the groups on the way. bfloat16 is written as Keras does: two opaque bytes and an attribute `dtype`.
Handle create_dataset(const Handle& parent, const std::string& path, const TensorType& type);
/// As above, with all its values, in the machine's byte order.
Handle create_dataset(const Handle& parent, const std::string& path, const TensorType& type, std::span<const std::byte> values);
/// Rows [first, first + count) of the first axis. A scalar is one row.
void write_rows(const Handle& dataset, int64_t first, int64_t count, std::span<const std::byte> values);

Handle type_of(const Handle& dataset);
Handle space_of(const Handle& dataset);
Handle creation_properties_of(const Handle& dataset);
/// The element type that a stored type holds, whatever its byte order; opaque pairs of bytes are bfloat16, the enumeration {FALSE, TRUE} is bool.
/// Nothing for strings, compounds and the like.
std::optional<DType> dtype_of(const Handle& type);
/// Throws H12 when an axis or the product of all doesn't fit in 63 bits, H16 for a data set without a space.
Shape shape_of(const Handle& dataset);
/// All values, converted to the machine's byte order; `into` has the bytes of dtype_of(type_of(dataset)) and shape_of(dataset).
void read_values(const Handle& dataset, std::span<std::byte> into);
/// Rows [first, first + count) of the first axis.
void read_rows(const Handle& dataset, int64_t first, int64_t count, std::span<std::byte> into);

// Attributes.

bool has_attribute(const Handle& object, const std::string& name);
std::vector<std::string> attribute_names(const Handle& object);
/// One string, of fixed or variable length, ASCII or UTF-8. Throws H28 when the attribute holds something else.
std::string read_text(const Handle& object, const std::string& name);
/// A list of strings, or a number array without elements, which is how h5py stores an empty list.
std::vector<std::string> read_texts(const Handle& object, const std::string& name);
/// A variable-length UTF-8 string, as h5py writes str.
void write_text(const Handle& object, const std::string& name, std::string_view text);
/// A list of fixed-length strings, as Keras writes `layer_names`; an empty one as h5py does. Split into name0, name1, ... above 64,512 bytes.
void write_texts(const Handle& object, const std::string& name, std::span<const std::string> texts);

}  // namespace lockstep::hdf5
