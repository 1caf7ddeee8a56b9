#include "berth/flow/table.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::flow {
namespace {

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file)
      : text_(text), file_(file), separator_(file.ends_with(".tsv") ? '\t' : ',') {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Result<Table> read() {
    Table table;
    while (at_ < text_.size()) {
      begun_ = line_;
      BERTH_ASSIGN(auto fields, take_row());
      if (fields.size() == 1 && fields[0].empty()) continue;
      if (table.columns.empty()) {
        BERTH_TRY(check_columns(fields));
        table.columns = std::move(fields);
        continue;
      }
      if (fields.size() != table.columns.size())
        return wrong("{} fields, where the first line has {}: {}", fields.size(),
                     table.columns.size(), clip(join(fields, std::string(1, separator_))));
      table.rows.push_back(std::move(fields));
    }
    if (table.columns.empty()) return wrong("the table is empty: its first line names the columns");
    return table;
  }

 private:
  template <class... Values>
  std::unexpected<Error> wrong(fmt::format_string<Values...> format, Values&&... values) const {
    return fail(ErrorKind::invalid, "{}:{}: {}", file_, begun_,
                fmt::format(format, std::forward<Values>(values)...));
  }

  Status check_columns(const std::vector<std::string>& names) const {
    for (auto name = names.begin(); name != names.end(); ++name) {
      if (name->empty()) return wrong("column {} has no name", name - names.begin() + 1);
      if (std::find(names.begin(), name, *name) != name)
        return wrong("two columns are called '{}'", clip(*name));
    }
    return {};
  }

  Result<std::vector<std::string>> take_row() {
    std::vector<std::string> fields;
    for (;;) {
      BERTH_ASSIGN(std::string field, take_field());
      if (field.find('\0') != std::string::npos || valid_utf8(field) != field)
        return wrong("field {} is not UTF-8 text", fields.size() + 1);
      fields.push_back(std::move(field));
      if (at_ < text_.size() && text_[at_] == separator_) {
        ++at_;
        continue;
      }
      end_line();
      return fields;
    }
  }

  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) ++at_;
    ++line_;
  }

  Result<std::string> take_field() {
    if (separator_ == ',' && at_ < text_.size() && text_[at_] == '"') return take_quoted();
    auto end = std::min(text_.find_first_of(separator_ == ',' ? ",\n" : "\t\n", at_), text_.size());
    auto field = text_.substr(at_, end - at_);
    if (field.ends_with('\r') && (end == text_.size() || text_[end] == '\n'))
      field.remove_suffix(1);
    at_ += field.size();
    return std::string(field);
  }

  Result<std::string> take_quoted() {
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        field += text_[at_];
      } else if (text_.substr(at_ + 1).starts_with('"')) {
        field += text_[++at_];
      } else {
        ++at_;
        const auto after = text_.substr(at_);
        if (after.empty() || after[0] == separator_ || after[0] == '\n' ||
            after.starts_with("\r\n"))
          return field;
        return wrong("text follows a closed quote: {}",
                     clip(after.substr(0, after.find('\n')), 20));
      }
    }
    return wrong("a quote is not closed");
  }

  std::string_view text_;
  const std::string& file_;
  const char separator_;
  std::size_t at_ = 0;
  int line_ = 1, begun_ = 1;
};

}  // namespace

Result<Table> read_table(std::string_view text, const std::string& file) {
  if (!file.ends_with(".csv") && !file.ends_with(".tsv"))
    return fail(ErrorKind::invalid, "{}: a table is a .csv or a .tsv file", file);
  if (text.size() > kMostTableBytes)
    return fail(ErrorKind::invalid, "{}: a table of more than {} MB", file, kMostTableBytes >> 20);
  return TableReader(text, file).read();
}

}  // namespace berth::flow
