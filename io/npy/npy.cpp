#include "io/npy/npy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t alignment = 64;
constexpr size_t longest_header = 64 * 1024;

/// Reads the header's Python dictionary: three known keys, in any order and spacing.
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& place) : rest_(text), place_(place) {}

  NpyHeader parsed() {
    NpyHeader header;
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') fail("structured elements are refused; save each field as an array of its own");
        descr = quoted();
      } else if (key == "fortran_order") {
        fortran_order = boolean();
      } else if (key == "shape") {
        shape = axes();
      } else {
        fail(fmt::format("unknown key '{}' in the header", printable(key)));
      }
      if (!take(',') && peek() != '}') fail("odd header: expected ',' or '}'");
    }
    if (!descr || !fortran_order || !shape) fail("odd header: it must have the keys 'descr', 'fortran_order' and 'shape'");
    header.type = {dtype_of(*descr), std::move(*shape)};
    header.fortran_order = *fortran_order;
    header.big_endian = descr->front() == '>';
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw Error("D08", place_, message); }

  char peek() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("odd header: expected '{}' before \"{}\"", c, printable(rest_.substr(0, 40))));
  }
  std::string quoted() {
    const char quote = peek();
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail(fmt::format("odd header: expected a quoted word before \"{}\"", printable(rest_.substr(0, 40))));
    const std::string word(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return word;
  }
  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("odd header: 'fortran_order' must be True or False");
  }
  Shape axes() {
    Shape shape;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t axis = -1;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), axis);
      if (error != std::errc() || axis < 0) fail(fmt::format("odd header: expected the size of an axis before \"{}\"", printable(rest_.substr(0, 40))));
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      take('L');  // Python 2 wrote long integers so
      shape.push_back(axis);
      if (!take(',') && peek() != ')') fail("odd header: expected ',' or ')' in 'shape'");
    }
    return shape;
  }

  DType dtype_of(const std::string& descr) const {
    struct Known {
      std::string_view code;
      DType dtype;
    };
    static constexpr std::array<Known, 12> known = {{{"b1", DType::boolean}, {"u1", DType::u8}, {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}, {"i1", DType::i8}, {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64}, {"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}}};
    const bool ordered = !descr.empty() && std::string_view("<>|=").find(descr.front()) != std::string_view::npos;
    const std::string_view code = ordered ? std::string_view(descr).substr(1) : std::string_view(descr);
    for (const Known& each : known) {
      if (each.code == code) return each.dtype;
    }
    if (code.starts_with('O')) fail("object arrays are refused: they hold Python code; save an array of numbers");
    if (code.starts_with('U') || code.starts_with('S')) fail(fmt::format("text ('{}') is refused; save an array of numbers", printable(descr)));
    if (code == "V2") fail("two bytes without a type ('V2'), perhaps bfloat16: save it as float32");
    fail(fmt::format("elements of type '{}' are refused; known: bool, integers of 8 to 64 bits, floats of 16, 32 and 64", printable(descr)));
  }

  std::string_view rest_;
  const std::string& place_;
};

std::string code_of(DType dtype) {
  const char kind = dtype == DType::boolean ? 'b' : is_floating(dtype) ? 'f'
                                                : dtype >= DType::i8   ? 'i'
                                                                       : 'u';
  return fmt::format("{}{}{}", size_of(dtype) == 1 ? '|' : '<', kind, size_of(dtype));
}

void reverse_bytes(std::span<std::byte> values, size_t size) {
  for (size_t i = 0; i + size <= values.size(); i += size) std::reverse(values.begin() + i, values.begin() + i + size);
}

/// From first-axis-fastest to row-major.
Tensor reordered(const Tensor& tensor) {
  Tensor result(tensor.type());
  const Shape& shape = tensor.shape();
  const size_t size = size_of(tensor.dtype());
  std::vector<int64_t> index(shape.size(), 0);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = 1; axis < shape.size(); ++axis) strides[axis] = strides[axis - 1] * shape[axis - 1];
  int64_t from = 0;
  for (int64_t to = 0; to < tensor.elements(); ++to) {
    std::memcpy(result.bytes().data() + to * size, tensor.bytes().data() + from * size, size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

NpyHeader read_npy_header(const NextBytes& next, uint64_t size, const std::string& place) {
  const auto fail = [&](const std::string& message) { throw Error("D08", place, message); };
  if (size < 10) fail(fmt::format("{} bytes are no .npy file; a header alone is longer", size));
  std::array<std::byte, 12> start{};
  next(std::span(start).first(8));
  if (std::memcmp(start.data(), magic.data(), magic.size()) != 0) fail("no .npy file: it doesn't begin with \\x93NUMPY");
  const int version = static_cast<int>(start[6]);
  if (version < 1 || version > 3) fail(fmt::format("version {} of the .npy format is unknown; versions 1 to 3 are read", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  next(std::span(start).subspan(8, length_bytes));
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= static_cast<size_t>(start[8 + i]) << (8 * i);
  const uint64_t values_at = 8 + length_bytes + length;
  if (values_at > size) fail(fmt::format("truncated: the header ends at byte {}, the file at {}", values_at, size));
  if (length > longest_header) fail(fmt::format("odd header: {} bytes long; at most {} are read", length, longest_header));
  std::string text(length, '\0');
  next(std::as_writable_bytes(std::span(text)));
  NpyHeader header = HeaderText(text, place).parsed();
  header.values_at = values_at;
  uint64_t bytes = size_of(header.type.dtype);
  for (const int64_t axis : header.type.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(axis), &bytes)) fail(fmt::format("shape {} overflows 64 bits", text_of(header.type.shape)));
  }
  if (bytes > size - values_at) fail(fmt::format("truncated: {} needs {} bytes, the file has {}", header.type.text(), bytes, size - values_at));
  return header;
}

Tensor read_npy_values(const NextBytes& next, const NpyHeader& header) {
  Tensor tensor(header.type);
  next(tensor.bytes());
  if (header.big_endian) reverse_bytes(tensor.bytes(), size_of(header.type.dtype));
  return header.fortran_order ? reordered(tensor) : tensor;
}

Tensor read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? std::streamoff(file.tellg()) : -1;
  if (size < 0 || size == std::numeric_limits<std::streamoff>::max()) throw Error("D01", path, fmt::format("cannot be opened: {}", size < 0 ? std::strerror(errno) : "is a directory"));
  file.seekg(0);
  const NextBytes next = [&](std::span<std::byte> out) {
    if (!file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()))) throw Error("D08", path, "ends while it is read");
  };
  const NpyHeader header = read_npy_header(next, static_cast<uint64_t>(size), path);
  return read_npy_values(next, header);
}

std::vector<std::byte> npy_bytes(const Tensor& tensor) {
  if (tensor.dtype() == DType::bf16) return npy_bytes(cast(tensor, DType::f32));
  std::string shape = fmt::format("{}", fmt::join(tensor.shape(), ", "));
  if (tensor.shape().size() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code_of(tensor.dtype()), shape);
  // numpy leaves room for the first axis to grow in place, and always pads.
  constexpr size_t growth = 21;
  if (!tensor.shape().empty()) header.append(growth - fmt::format("{}", tensor.shape()[0]).size(), ' ');
  constexpr size_t before = 10;
  header.append(alignment - (before + header.size() + 1) % alignment, ' ');
  header += '\n';
  if (header.size() > 0xffff) throw Error("D08", "", fmt::format("an array of {} axes doesn't fit in a .npy header", tensor.shape().size()));
  std::vector<std::byte> bytes(before + header.size() + tensor.bytes().size());
  std::memcpy(bytes.data(), magic.data(), magic.size());
  bytes[6] = std::byte{1};
  for (size_t i = 0; i < 2; ++i) bytes[8 + i] = static_cast<std::byte>(header.size() >> (8 * i));
  std::memcpy(bytes.data() + before, header.data(), header.size());
  std::ranges::copy(tensor.bytes(), bytes.begin() + static_cast<std::ptrdiff_t>(before + header.size()));
  return bytes;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const std::vector<std::byte> bytes = npy_bytes(tensor);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Error("W01", path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

}  // namespace lockstep
