#include "berth/fleet/table_lines.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::fleet {

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

Status TableLines::expect_fields(std::size_t count) const {
  if (fields_.size() == count) return {};
  return wrong(std::min(fields_.size(), count) - 1, fmt::format("{} columns", count), line_);
}

std::unexpected<Error> TableLines::wrong(std::size_t field, std::string_view wanted,
                                         std::string_view found) const {
  std::size_t column = 1 + field;  // the commas
  for (std::size_t f = 0; f < field; ++f) column += fields_[f].size();
  return fail(ErrorKind::invalid, "{}:{}:{}: wanted {}, found '{}'", name_, number_, column, wanted,
              clip(found));
}

}  // namespace berth::fleet
