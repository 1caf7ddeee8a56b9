// Values go into a PostgreSQL statement and come out of it as text, and NULL as nullopt. Our texts
// may be any bytes, those of PostgreSQL may not; to_text() turns the one into the other and keeps
// them readable.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/time.h"
#include "berth/store/records.h"
#include "berth/store/row_sum.h"
#include "berth/store/store.h"

namespace berth::store {

/// UTF-8 stays as it is, unless it holds NUL or SUB (\x1a). Of any other text each byte that is one
/// of these, or no ASCII, becomes SUB and two hexadecimal digits. Different texts stay different.
std::string to_text(std::string_view bytes);
/// The inverse of to_text().
std::string from_text(std::string_view text);

using Sql = std::optional<std::string>;

inline Sql to_sql(std::int64_t value) {
  return fmt::format("{}", value);
}
inline Sql to_sql(int value) {
  return fmt::format("{}", value);
}
inline Sql to_sql(double value) {
  return value == value ? fmt::format("{}", value) : "NaN";
}
inline Sql to_sql(const std::string& value) {
  return to_text(value);
}
template <class Enum>
  requires std::is_enum_v<Enum>
Sql to_sql(Enum value) {
  return std::string(stored_name(value));
}
inline Sql to_sql(std::optional<exec::Cause> value) {
  return value ? to_sql(*value) : "";
}
inline Sql to_sql(const Values& value) {
  return to_json(value);
}
inline Sql to_sql(Wall value) {
  return to_sql(std::int64_t{value.time_since_epoch().count()});
}
template <class Tag>
Sql to_sql(Id<Tag> value) {
  return to_sql(value.value);
}
template <class Value>
Sql to_sql(const std::optional<Value>& value) {
  return value ? to_sql(*value) : std::nullopt;
}

// These return false when the text does not stand for a value of the type.
bool from_sql(std::string_view text, std::int64_t& value);
bool from_sql(std::string_view text, int& value);
bool from_sql(std::string_view text, double& value);
bool from_sql(std::string_view text, std::string& value);
bool from_sql(std::string_view text, RunState& value);
bool from_sql(std::string_view text, TaskState& value);
bool from_sql(std::string_view text, Phase& value);
bool from_sql(std::string_view text, Values& value);
bool from_sql(std::string_view text, Wall& value);
template <class Tag>
bool from_sql(std::string_view text, Id<Tag>& value) {
  return from_sql(text, value.value);
}

/// The rows for one statement as one list for each column, which unnest() turns into rows again.
class Lists {
 public:
  /// As long as there are no rows, there are `columns` empty lists.
  explicit Lists(std::size_t columns = 0) : lists_(columns) {}

  /// A RowSum is left out: this store has no such columns.
  template <class... Columns>
  void add(const Columns&... values) {
    lists_.resize((std::size_t{!std::is_same_v<Columns, RowSum>} + ...));
    std::size_t column = 0;
    const auto add_one = [&]<class Value>(const Value& value) {
      if constexpr (!std::is_same_v<Value, RowSum>) append(lists_[column++], to_sql(value));
    };
    (add_one(values), ...);
    ++rows_;
  }
  void add_row(const std::vector<Sql>& values) {
    lists_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) append(lists_[i], values[i]);
    ++rows_;
  }
  bool empty() const { return rows_ == 0; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return lists_.size(); }
  /// The column as PostgreSQL writes an array: {"a","b",NULL}.
  std::string list(std::size_t column) const { return "{" + lists_[column] + "}"; }

 private:
  static void append(std::string& list, const Sql& value);

  std::vector<std::string> lists_;  // without their braces
  std::size_t rows_ = 0;
};

struct Statement {
  const char* sql = "";
  std::vector<Sql> values;

  void bind(const Lists& lists) {
    for (std::size_t i = 0; i < lists.columns(); ++i) values.emplace_back(lists.list(i));
  }
  void bind(const RowSum&) {}
  template <class Value>
  void bind(const Value& value) {
    values.push_back(to_sql(value));
  }
};
using Statements = std::vector<Statement>;

/// Appends a statement. `values` become $1, $2, …; each column of a Lists becomes one of them.
template <class... Parameters>
void add(Statements& statements, const char* sql, const Parameters&... values) {
  Statement& statement = statements.emplace_back(sql);
  (statement.bind(values), ...);
}

}  // namespace berth::store
