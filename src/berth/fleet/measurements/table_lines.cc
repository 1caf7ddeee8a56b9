#include "berth/fleet/measurements/table_lines.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::fleet {

TableLines::TableLines(std::string_view name, std::string_view text) : text_(text), name_(name) {
  text_.skip_byte_order_mark();
}

Result<std::vector<std::size_t>> TableLines::read_head(std::span<const std::string_view> known,
                                                       std::size_t needed, Others others) {
  next();
  number_ = 1;  // also of no text at all
  width_ = fields_.size();
  std::vector<std::size_t> columns(known.size(), kNoColumn);
  for (std::size_t f = 0; f < width_; ++f) {
    const auto found = std::ranges::find(known, lower(trim(fields_[f])),
                                         [](std::string_view name) { return lower(name); });
    if (found == known.end()) {
      if (others == Others::passed_over) continue;
      const std::vector<std::string> names(known.begin(), known.end());
      return wrong(f, fmt::format("one of the columns {}", join(names, ", ")), fields_[f]);
    }
    std::size_t& column = columns[static_cast<std::size_t>(found - known.begin())];
    if (column != kNoColumn) return wrong(f, "each column once", fields_[f]);
    column = f;
  }
  for (std::size_t c = 0; c < needed; ++c)
    if (columns[c] == kNoColumn) return wrong(0, fmt::format("a column {}", known[c]), line_);
  return columns;
}

bool TableLines::next() {
  if (text_.at_end()) return false;
  const std::string_view rest = text_.rest();
  fields_.clear();
  do fields_.push_back(text_.take_plain());
  while (text_.next_cell());
  auto& last = fields_.back();
  if (last.ends_with('\r')) last.remove_suffix(1);
  line_ = rest.substr(0, static_cast<std::size_t>(last.data() + last.size() - rest.data()));
  ++number_;
  return true;
}

Status TableLines::expect_all_fields() const {
  if (fields_.size() == width_) return {};
  return wrong(std::min(fields_.size(), width_) - 1, fmt::format("{} columns", width_), line_);
}

std::unexpected<Error> TableLines::wrong(std::size_t field, std::string_view wanted,
                                         std::string_view found) const {
  std::size_t column = 1 + field;  // the commas
  for (std::size_t f = 0; f < field; ++f) column += fields_[f].size();
  return fail(ErrorKind::invalid, "{}:{}:{}: expected {}, got '{}'", name_, number_, column, wanted,
              clip(found));
}

}  // namespace berth::fleet
