#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/data/formats.h"
#include "io/hdf5/handle.h"

namespace lockstep {

namespace {

// Chunked data below this size is unpacked once instead of a chunk for each row that is asked for.
constexpr size_t kept_in_memory = size_t{256} << 20;

// HDF5 keeps state of its own for the whole process, and not every build of it locks.
std::mutex& library() {
  static std::mutex mutex;
  return mutex;
}

/// Follows a path link by link, so that an error can say where it ends. Links into other files are refused: a data file must not read what its owner didn't name.
hdf5::Handle open_path(const hdf5::Handle& file, const std::string& path) {
  hdf5::Handle object = hdf5::open_group(file, "/");
  std::string so_far;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const std::string place = fmt::format("{}: {}/{}", hdf5::place_of(file), printable(so_far), printable(name));
    if (hdf5::info_of(object).kind != hdf5::ObjectKind::group) throw Error("D01", place, fmt::format("no such object: '{}' is not a group", printable(so_far)));
    const std::optional<hdf5::LinkKind> kind = hdf5::link_kind(object, name);
    if (!kind) {
      constexpr size_t listed = 100000;
      std::vector<std::string> names;
      for (const hdf5::Link& link : hdf5::links_of(object, listed)) names.push_back(printable(link.name));
      const std::string hint = did_you_mean(name, names);
      if (names.size() > 20) names.resize(20);
      throw Error("D01", place, fmt::format("no such object{}; '{}/' has: {}", hint, printable(so_far), fmt::join(names, ", ")));
    }
    if (*kind == hdf5::LinkKind::external) throw Error("H07", place, "is a link into another file: refused");
    object = hdf5::open_object(object, name);
    so_far += "/" + name;
  }
  return object;
}

/// What HDF5 would turn into zeros or foreign bytes without a word.
void check_storage(const hdf5::Handle& dataset, const std::string& place, bool has_elements) {
  const hdf5::Handle properties = hdf5::creation_properties_of(dataset);
  if (H5Pget_layout(properties.id()) == H5D_VIRTUAL) throw Error("H10", place, "is a virtual data set: refused");
  if (H5Pget_external_count(properties.id()) > 0) throw Error("H09", place, "keeps its data outside this file: refused");
  if (has_elements && H5Dget_storage_size(dataset.id()) == 0) throw Error("H23", place, "has no stored values; it would be read as zeros");
  const int filters = H5Pget_nfilters(properties.id());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties.id(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (H5Zfilter_avail(filter) <= 0) throw Error("H21", place, fmt::format("needs filter {}, which this HDF5 doesn't have; rewrite it with gzip or without compression", filter));
  }
}

/// Where a data set's bytes lie in the file, when they lie there one after the other just as they are.
std::optional<uint64_t> plain_offset(const hdf5::Handle& file, const hdf5::Handle& dataset) {
  const hdf5::Handle properties = hdf5::creation_properties_of(dataset);
  if (H5Pget_layout(properties.id()) != H5D_CONTIGUOUS) return std::nullopt;
  const hdf5::Handle file_properties(H5Fget_create_plist(file.id()), H5Pclose);
  hsize_t user_block = 0;
  if (!file_properties || H5Pget_userblock(file_properties.id(), &user_block) < 0 || user_block != 0) return std::nullopt;
  const haddr_t offset = H5Dget_offset(dataset.id());
  return offset == HADDR_UNDEF ? std::nullopt : std::optional<uint64_t>(offset);
}

/// Read through HDF5, rows that follow one another together.
class ChunkedArray : public RowArray {
 public:
  ChunkedArray(hdf5::Handle file, hdf5::Handle dataset, const std::string& place, DType dtype, const Shape& shape)
      : RowArray(place, dtype, shape), file_(std::move(file)), dataset_(std::move(dataset)) {}
  ChunkedArray(const ChunkedArray&) = delete;
  ~ChunkedArray() override {
    const std::lock_guard lock(library());
    dataset_ = {};
    file_ = {};
  }

  void read(std::span<const int64_t> rows, std::span<std::byte> out) const override {
    const size_t size = row().bytes();
    const std::lock_guard lock(library());
    for (size_t i = 0; i < rows.size();) {
      size_t run = 1;
      while (i + run < rows.size() && rows[i + run] == rows[i] + static_cast<int64_t>(run)) ++run;
      hdf5::read_rows(dataset_, rows[i], static_cast<int64_t>(run), out.subspan(i * size, run * size));
      i += run;
    }
  }

 private:
  hdf5::Handle file_;
  hdf5::Handle dataset_;
};

std::unique_ptr<RowArray> open_hdf5(const std::shared_ptr<const File>& file, const std::string& array) {
  const std::lock_guard lock(library());
  hdf5::Handle handle = hdf5::open_file(file->path());
  hdf5::Handle dataset = open_path(handle, array);
  const std::string place = fmt::format("{}: {}{}", file->path(), array.starts_with('/') ? "" : "/", printable(array));
  if (hdf5::info_of(dataset).kind != hdf5::ObjectKind::dataset) throw Error("D01", place, "is a group; expected a data set");
  const hdf5::Handle type = hdf5::type_of(dataset);
  const std::optional<DType> dtype = hdf5::dtype_of(type);
  if (!dtype) throw Error("H14", place, "holds no numbers (text, structures or the like); expected integers or floats");
  const Shape shape = hdf5::shape_of(dataset);
  const TensorType whole{*dtype, shape};
  check_storage(dataset, place, whole.elements() > 0);
  if (shape.empty()) throw Error("H16", place, "is a single number; its first axis must count the rows");

  if (const std::optional<uint64_t> offset = plain_offset(handle, dataset)) {
    if (*offset > file->size() || whole.bytes() > file->size() - *offset) throw Error("H03", place, fmt::format("truncated: its values end at byte {}, the file at {}", *offset + whole.bytes(), file->size()));
    const auto order = H5Tget_order(type.id()) == H5T_ORDER_BE ? StoredArray::ByteOrder::big : StoredArray::ByteOrder::little;
    return std::make_unique<StoredArray>(file, place, *dtype, shape, *offset, order);
  }
  if (whole.bytes() <= kept_in_memory) {
    Tensor values(whole);
    hdf5::read_values(dataset, values.bytes());
    return std::make_unique<MemoryArray>(place, std::move(values));
  }
  return std::make_unique<ChunkedArray>(std::move(handle), std::move(dataset), place, *dtype, shape);
}

// The signature follows a user block of 0, 512, 1024, ... bytes.
bool is_hdf5(std::span<const std::byte> head) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  for (size_t at = 0; at + signature.size() <= head.size(); at = at == 0 ? 512 : 2 * at) {
    const std::string_view here(reinterpret_cast<const char*>(head.data()) + at, signature.size());
    if (here == signature) return true;
  }
  return false;
}

}  // namespace

DataFormat hdf5_format() { return {"hdf5", DataFormat::Holds::named_arrays, is_hdf5, open_hdf5}; }

bool is_hdf5_dataset(const File& file, const std::string& path) {
  const std::lock_guard lock(library());
  const hdf5::Handle handle = hdf5::open_file(file.path());
  return hdf5::info_of(open_path(handle, path)).kind == hdf5::ObjectKind::dataset;
}

}  // namespace lockstep
