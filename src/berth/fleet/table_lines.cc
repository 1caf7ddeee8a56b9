#include "berth/fleet/table_lines.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::fleet {

TableLines::TableLines(std::string_view name, std::string_view text) : name_(name), text_(text) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
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
  if (text_.empty()) return false;
  const auto end = text_.find('\n');
  line_ = text_.substr(0, end);
  text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  fields_ = split(line_, ',');
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
