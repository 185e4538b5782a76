#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// An HDF5 file in the making: groups, contiguous data sets, attributes. Paths are absolute ("/outputs/logits"); groups on the way are made.
/// The bytes are a function of what is written and in which order: no times. Every call throws W40 with the file and the object as place.
/// Objects may be used by one thread at a time, several objects by several.
class Hdf5Writer {
 public:
  /// In memory: `name` is for messages.
  static Hdf5Writer in_memory(std::string name);
  /// On disk: written beside `path` under a name of its own, which `finish` renames, so that `path` is never half a file.
  static Hdf5Writer to_file(std::string path);

  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;
  /// Without `finish` nothing is left on disk.
  ~Hdf5Writer();

  /// Makes the group if it isn't there.
  void group(const std::string& path);
  /// A data set with all its values. bfloat16 is stored as Keras does: two opaque bytes, and an attribute `dtype`.
  void dataset(const std::string& path, const Tensor& values);
  /// A data set of a known size, whose rows `write_rows` brings, in any order. Rows never written are undefined.
  void dataset(const std::string& path, const TensorType& type);
  /// Rows [first, first + count) of the first axis, in the machine's byte order.
  void write_rows(const std::string& path, int64_t first, int64_t count, std::span<const std::byte> values);

  /// Of a group or data set that exists; "/" is the file's root. A variable-length UTF-8 string, as h5py writes str.
  void attribute(const std::string& path, const std::string& name, std::string_view text);
  /// A list of strings, as Keras writes `layer_names`: split into name0, name1, ... where it is too long for one.
  void attribute(const std::string& path, const std::string& name, std::span<const std::string> texts);
  void attribute(const std::string& path, const std::string& name, int64_t number);

  /// Where the values of a data set start in the file, in bytes; they are contiguous. Only for one with values that has at least one element.
  uint64_t offset_of(const std::string& path) const;

  /// In memory: the file's bytes. On disk: empty, and the file is at its path. Nothing can be written afterwards.
  std::vector<std::byte> finish();

 private:
  struct State;
  explicit Hdf5Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
