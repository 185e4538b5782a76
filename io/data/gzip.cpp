#include "io/data/gzip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

constexpr size_t piece = size_t{256} << 10;
constexpr int gzip_window = 15 + 16;  // zlib's way to ask for the gzip format

}  // namespace

struct Gunzip::Stream : z_stream {
  Stream() : z_stream{} {
    if (inflateInit2(this, gzip_window) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(this); }
};

bool is_gzip(std::span<const std::byte> head) { return head.size() >= 2 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b}; }

Gunzip::Gunzip(const File& file) : file_(file), stream_(std::make_unique<Stream>()), buffer_(std::min<uint64_t>(piece, file.size())) {}

Gunzip::~Gunzip() = default;

bool Gunzip::refill() {
  if (stream_->avail_in > 0) return true;
  const size_t count = std::min<uint64_t>(buffer_.size(), file_.size() - offset_);
  file_.read_at(offset_, std::span(buffer_).first(count));
  offset_ += count;
  stream_->next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream_->avail_in = static_cast<uInt>(count);
  return count > 0;
}

size_t Gunzip::read(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size() && !ended_) {
    const bool more = refill();
    if (between_ && (!more || (given_ > 0 && *stream_->next_in == 0))) {
      ended_ = true;
      break;
    }
    if (!more) throw Error("D11", file_.path(), fmt::format("unexpected end after {} bytes ({} unpacked): the file is truncated", file_.size(), given_ + done));
    between_ = false;
    const size_t room = std::min<size_t>(out.size() - done, std::numeric_limits<uInt>::max());
    stream_->next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream_->avail_out = static_cast<uInt>(room);
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    done += room - stream_->avail_out;
    if (status == Z_STREAM_END) {
      between_ = true;
      inflateReset(stream_.get());
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Error("D11", file_.path(), fmt::format("is damaged near byte {} ({} unpacked): {}", offset_ - stream_->avail_in, given_ + done, stream_->msg ? stream_->msg : "zlib gives no reason"));
    }
  }
  given_ += done;
  return done;
}

bool unpack_whole(const File& file, std::span<std::byte> out) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) throw std::bad_alloc();
  const auto packed = std::make_unique_for_overwrite<std::byte[]>(file.size());
  file.read_at(0, {packed.get(), file.size()});
  size_t read = 0;
  const libdeflate_result result = libdeflate_gzip_decompress_ex(decompressor.get(), packed.get(), file.size(), out.data(), out.size(), &read, nullptr);
  return result == LIBDEFLATE_SUCCESS && read == file.size();
}

uint32_t gzip_stated_size(const File& file) {
  std::array<std::byte, 4> bytes{};
  if (file.size() >= bytes.size()) file.read_at(file.size() - bytes.size(), bytes);
  uint32_t size = 0;
  for (size_t i = 0; i < bytes.size(); ++i) size |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return size;
}

}  // namespace lockstep
