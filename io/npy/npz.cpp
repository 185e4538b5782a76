#include "io/npy/npz.h"

#include <zip.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/npy/npy.h"
#include "io/zip/writer.h"

namespace lockstep {

namespace {

constexpr std::string_view suffix = ".npy";
// Deflate can't do better than 1032:1, and data that comes near it is zeros: above this size that is a mistake or an attack.
constexpr uint64_t most_expanded = uint64_t{1} << 30;
constexpr uint64_t highest_ratio = 100;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

Archive open_archive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  const int reason = errno;
  if (code == ZIP_ER_OPEN || code == ZIP_ER_NOENT) throw Error("D01", path, fmt::format("cannot be opened: {}", std::strerror(code == ZIP_ER_NOENT ? ENOENT : reason)));
  if (code == ZIP_ER_READ && reason == EISDIR) throw Error("D01", path, "is a directory");
  throw Error("D08", path, "no .npz archive: it has no zip directory at its end (truncated?)");
}

std::vector<std::string> names_of(zip_t* archive) {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    const std::string_view text = name ? name : "";
    names.emplace_back(text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text);
  }
  return names;
}

}  // namespace

std::vector<std::string> npz_names(const std::string& path) { return names_of(open_archive(path).get()); }

Tensor read_npz(const std::string& path, const std::string& name) {
  const Archive archive = open_archive(path);
  const std::string place = fmt::format("{}: {}", path, printable(name));
  const std::vector<std::string> names = names_of(archive.get());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error("D08", place, fmt::format("the archive has no such array{}; it has: {}", did_you_mean(name, names), printable(fmt::format("{}", fmt::join(names, ", ")))));
  if (std::count(names.begin(), names.end(), name) > 1) throw Error("D08", place, "is stored twice: refused");
  const auto index = static_cast<zip_uint64_t>(found - names.begin());

  zip_stat_t facts;
  zip_stat_init(&facts);
  if (zip_stat_index(archive.get(), index, 0, &facts) < 0) throw Error("D08", place, "the zip directory is damaged");
  if (facts.encryption_method != ZIP_EM_NONE) throw Error("D08", place, "is encrypted");
  if (facts.comp_method != ZIP_CM_STORE && facts.comp_method != ZIP_CM_DEFLATE) throw Error("D08", place, fmt::format("compression method {} is not supported; numpy uses none or deflate", facts.comp_method));
  if (facts.size > most_expanded && facts.size / highest_ratio > facts.comp_size) {
    throw Error("D09", place, fmt::format("would expand {}:1 to {} bytes; if it is meant, save it with numpy.save or numpy.savez", facts.size / std::max<uint64_t>(facts.comp_size, 1), facts.size));
  }

  const Member member(zip_fopen_index(archive.get(), index, ZIP_FL_UNCHANGED));
  if (!member) throw Error("D08", place, fmt::format("cannot be read: {}", zip_strerror(archive.get())));
  const NextBytes next = [&](std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size()) {
      const zip_int64_t count = zip_fread(member.get(), out.data() + done, out.size() - done);
      if (count <= 0) throw Error("D08", place, fmt::format("is damaged: {}", count < 0 ? zip_file_strerror(member.get()) : "it ends early"));
      done += static_cast<size_t>(count);
    }
  };
  const NpyHeader header = read_npy_header(next, facts.size, place);
  Tensor tensor = read_npy_values(next, header);
  // The checksum is compared where the member ends.
  std::byte beyond[4096];
  zip_int64_t count = 0;
  while ((count = zip_fread(member.get(), beyond, sizeof beyond)) > 0) {
  }
  if (count < 0) throw Error("D08", place, fmt::format("is damaged: {}", zip_file_strerror(member.get())));
  return tensor;
}

void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  ZipWriter archive;
  for (const auto& [name, tensor] : arrays) archive.add(name + std::string(suffix), npy_bytes(tensor));
  const std::vector<std::byte> bytes = archive.finish();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error("W01", path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

}  // namespace lockstep
