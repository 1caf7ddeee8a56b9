#include "berth/flow/table.h"

#include <algorithm>

#include "berth/base/csv.h"
#include "berth/base/text.h"

namespace berth::flow {
namespace {

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file)
      : file_(file), separator_(file.ends_with(".tsv") ? '\t' : ','), text_(text, separator_) {
    text_.skip_byte_order_mark();
  }

  Result<Table> read() {
    Table table;
    while (!text_.at_end()) {
      begun_ = text_.line();
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
    do {
      BERTH_ASSIGN(std::string field, take_field());
      if (field.find('\0') != std::string::npos || valid_utf8(field) != field)
        return wrong("field {} is not UTF-8 text", fields.size() + 1);
      fields.push_back(std::move(field));
    } while (text_.next_cell());
    return fields;
  }

  Result<std::string> take_field() {
    if (separator_ == ',' && text_.rest().starts_with('"')) return take_quoted();
    auto field = text_.take_plain();
    const bool ends_line = text_.at_end() || text_.rest().starts_with('\n');
    if (ends_line && field.ends_with('\r')) field.remove_suffix(1);
    return std::string(field);
  }

  Result<std::string> take_quoted() {
    auto field = text_.take_quoted();
    if (!field) return wrong("a quote is not closed");
    const auto after = text_.rest();
    const auto extra = text_.take_plain();
    const bool ends_line = text_.at_end() || text_.rest().starts_with('\n');
    if (extra.empty() || (ends_line && !text_.at_end() && extra == "\r")) return *std::move(field);
    return wrong("text follows a closed quote: {}", clip(after.substr(0, after.find('\n')), 20));
  }

  const std::string& file_;
  const char separator_;
  CsvText text_;
  std::size_t begun_ = 1;  // the line of the row
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
