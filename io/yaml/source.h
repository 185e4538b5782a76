#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/value/value.h"

namespace lockstep {

/// The lines of a text: finds the place of a byte. Quick when asked for bytes in rising order.
class Lines {
 public:
  explicit Lines(std::shared_ptr<const SourceText> source);

  /// Columns count characters, not bytes.
  Place place_of(size_t byte);
  /// Counts from 0, as begin_of takes it.
  size_t line_of(size_t byte) const;
  size_t begin_of(size_t line) const { return begins_[line]; }
  /// The line without its end.
  std::string_view text_of(size_t line) const;

 private:
  std::shared_ptr<const SourceText> source_;
  std::vector<size_t> begins_;
  size_t last_byte_ = 0;
  size_t last_line_ = 0;
  int last_column_ = 1;
};

/// Y21 for what is no UTF-8 text, or holds control characters.
void check_characters(const SourceText& source);

}  // namespace lockstep
