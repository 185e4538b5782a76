#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "io/hdf5/handle.h"

namespace lockstep::hdf5 {

/// An HDF5 file of weights from an unknown source. Every link in it is looked at when it is opened: links to other files, symbolic links, cycles of hard links,
/// more than 32 levels and more than 100,000 objects are refused, so that a path in it leads to what it says. Internal to io, as handle.h.
class WeightsFile {
 public:
  /// Throws Error H01 to H08, H25, H26.
  explicit WeightsFile(const std::string& path);
  /// The same for a file in memory; `name` stands for it in messages.
  WeightsFile(const std::string& name, std::span<const std::byte> image);

  /// As the user wrote it.
  const std::string& name() const { return name_; }
  bool has_group(const std::string& path) const { return groups_.contains(path); }
  bool has_dataset(const std::string& path) const { return datasets_.contains(path); }
  /// Absolute paths: "/model_weights/hidden".
  const std::set<std::string>& groups() const { return groups_; }
  const std::set<std::string>& datasets() const { return datasets_; }
  /// What is worth saying about the file: a user block.
  const std::vector<std::string>& notes() const { return notes_; }

  /// The type of a data set that can be read: numbers, stored in this file, written, not larger than the file can hold. Throws H09 to H21, H23.
  TensorType type_of(const std::string& path) const;
  /// All values in the machine's byte order; `into` has the bytes of type_of(path). Throws H22 when they are damaged.
  void read(const std::string& path, std::span<std::byte> into) const;

  /// An attribute that is one string, or nothing where it is absent. Throws H27 when it is longer than 8 MiB, H28 when it is no string.
  std::optional<std::string> text(const std::string& path, const std::string& attribute) const;
  /// An attribute that is a list of strings, also where Keras split it into name0, name1, ...; nothing where it is absent. Throws H28.
  std::optional<std::vector<std::string>> texts(const std::string& path, const std::string& attribute) const;

 private:
  void check_links(uint64_t file_bytes);
  void enter(const Handle& group, const std::string& path, std::vector<uint64_t>& ancestors, size_t& objects);
  [[noreturn]] void fail(const std::string& code, const std::string& path, const std::string& message) const;

  std::string name_;
  Handle file_;
  uint64_t file_bytes_ = 0;
  std::set<std::string> groups_;
  std::set<std::string> datasets_;
  std::vector<std::string> notes_;
};

/// Where the HDF5 signature is in the first bytes of a file: 0, 512, 1024, ...; nothing when it is no HDF5 file.
std::optional<uint64_t> signature_offset(const std::string& path);

}  // namespace lockstep::hdf5
