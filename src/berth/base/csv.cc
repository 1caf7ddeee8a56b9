#include "berth/base/csv.h"

#include <algorithm>

namespace berth {

void CsvText::skip_byte_order_mark() {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
}

std::string_view CsvText::take_plain() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string> CsvText::take_quoted() {
  std::string value;
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '"') {
      if (!text_.substr(++at_).starts_with('"')) return value;
    } else if (text_[at_] == '\n') {
      end_line(at_);
    }
    value += text_[at_];
  }
  return std::nullopt;
}

bool CsvText::next_cell() {
  const bool has_more = at_ < text_.size() && text_[at_] == separator_;
  if (!has_more) end_line(at_);
  at_ = std::min(at_ + 1, text_.size());
  return has_more;
}

void CsvText::end_line(std::size_t line_end) {
  ++line_;
  line_begin_ = line_end + 1;
}

}  // namespace berth
