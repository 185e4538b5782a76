#include "io/data/row_array.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error/error.h"

namespace lockstep {

RowArray::RowArray(std::string place, DType dtype, const Shape& shape) : place_(std::move(place)) {
  if (shape.empty()) throw Error("D12", place_, "is a single number; its first axis must count the rows");
  rows_ = shape[0];
  row_ = {dtype, Shape(shape.begin() + 1, shape.end())};
}

MemoryArray::MemoryArray(std::string place, Tensor values) : RowArray(std::move(place), values.dtype(), values.shape()), values_(std::move(values)) {}

void MemoryArray::read(std::span<const int64_t> rows, std::span<std::byte> out) const { copy_rows(values_.bytes(), row().bytes(), rows, out); }

StoredArray::StoredArray(std::shared_ptr<const File> file, std::string place, DType dtype, const Shape& shape, uint64_t offset, ByteOrder order)
    : RowArray(std::move(place), dtype, shape), file_(std::move(file)), offset_(offset), order_(order) {}

void StoredArray::read(std::span<const int64_t> rows, std::span<std::byte> out) const {
  const size_t size = row().bytes();
  file_->check_unchanged();
  for (size_t i = 0; i < rows.size();) {
    size_t run = 1;
    while (i + run < rows.size() && rows[i + run] == rows[i] + static_cast<int64_t>(run)) ++run;
    file_->read_at(offset_ + static_cast<uint64_t>(rows[i]) * size, out.subspan(i * size, run * size));
    i += run;
  }
  if (order_ == ByteOrder::big) reverse_byte_order(out, size_of(row().dtype));
}

namespace {

Shape joined_shape(const std::vector<std::unique_ptr<RowArray>>& parts) {
  Shape shape = {0};
  const Shape& row = parts.front()->row().shape;
  shape.insert(shape.end(), row.begin(), row.end());
  for (const auto& part : parts) {
    if (part->row() != parts.front()->row()) throw Error("D12", part->place(), fmt::format("rows are {}, those of {} are {}; all files of one column must agree", part->row().text(), parts.front()->place(), parts.front()->row().text()));
    shape[0] += part->rows();
  }
  return shape;
}

}  // namespace

ConcatenatedArray::ConcatenatedArray(std::vector<std::unique_ptr<RowArray>> parts)
    : RowArray(parts.front()->place(), parts.front()->row().dtype, joined_shape(parts)), parts_(std::move(parts)) {
  int64_t end = 0;
  for (const auto& part : parts_) ends_.push_back(end += part->rows());
}

void ConcatenatedArray::read(std::span<const int64_t> rows, std::span<std::byte> out) const {
  const size_t size = row().bytes();
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), rows[i]) - ends_.begin());
    const int64_t row_of_part = rows[i] - (part == 0 ? 0 : ends_[part - 1]);
    parts_[part]->read({&row_of_part, 1}, out.subspan(i * size, size));
  }
}

void reverse_byte_order(std::span<std::byte> values, size_t element) {
  for (size_t i = 0; i + element <= values.size(); i += element) std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + element));
}

void copy_rows(std::span<const std::byte> values, size_t size, std::span<const int64_t> rows, std::span<std::byte> out) {
  for (size_t i = 0; i < rows.size(); ++i) std::memcpy(out.data() + i * size, values.data() + static_cast<size_t>(rows[i]) * size, size);
}

}  // namespace lockstep
