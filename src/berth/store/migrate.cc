#include "berth/store/migrate.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <array>
#include <set>

#include "berth/store/postgres_session.h"
#include "berth/store/sqlite_database.h"

namespace berth::store {
namespace {

constexpr std::array kTables = {"name_counter", "run",    "run_spec",    "task",
                                "attempt",      "metric", "metric_last", "result"};
/// Sent together: neither side's memory is to grow with the file.
constexpr std::size_t kRowsAtOnce = 10'000;
constexpr auto kPatience = std::chrono::minutes(1);

/// By which a run is known again, with how far it has come.
constexpr const char* kRunFingerprints =
    "SELECT id || ' ' || name || ' ' || created_ns || ' ' || epoch || ' ' || state || ' ' ||"
    " last_token || ' ' || metrics_seen FROM run";
constexpr const char* kIsUsed =
    "SELECT (EXISTS (SELECT FROM name_counter) OR EXISTS (SELECT FROM result))::integer";

/// Whoever had the file open before it was left finds it closed: every change of a run touches its
/// row.
constexpr const char* kClose =
    "CREATE TRIGGER IF NOT EXISTS no_run BEFORE INSERT ON run BEGIN"
    " SELECT RAISE(ABORT, 'its runs are in a PostgreSQL database now'); END;"
    "CREATE TRIGGER IF NOT EXISTS no_change BEFORE UPDATE ON run BEGIN"
    " SELECT RAISE(ABORT, 'its runs are in a PostgreSQL database now'); END;";

class Move {
 public:
  Move(SQLite::Database& from, Session& to, const Migration& migration)
      : from_(from), to_(to), migration_(migration) {}

  Result<Migrated> all() {
    Statements first;
    add(first, "SELECT one FROM store FOR UPDATE");
    add(first, kRunFingerprints);
    add(first, kIsUsed);
    return to_.write(first, [&](auto& rows, auto& last) -> Result<Migrated> {
      Migrated migrated{to_.id(), to_.place(), false, {}};
      BERTH_ASSIGN(migrated.was_there, is_there(rows));
      if (migrated.was_there) return migrated;
      for (const std::string table : kTables) {
        BERTH_ASSIGN(const auto count, copy(table));
        migrated.rows.emplace_back(table, count);
      }
      add(last,
          "SELECT setval(pg_get_serial_sequence('run', 'id'), greatest($1::bigint, 1), $1 > 0)",
          last_given("run"));
      add(last, "UPDATE store SET results_kept = $1", last_given("result"));
      return migrated;
    });
  }

 private:
  /// Whether all runs of the file are there, as they are here; exists: others are.
  Result<bool> is_there(std::vector<Rows>& rows) {
    std::set<std::string> there;
    while (rows[1].next()) {
      std::string mark;
      BERTH_TRY(rows[1].read(mark));
      there.insert(std::move(mark));
    }
    std::int64_t used = 0;
    rows[2].next();
    BERTH_TRY(rows[2].read(used));
    if (there.empty() && used == 0) return false;
    bool all = !there.empty();
    for (SQLite::Statement marks(from_, kRunFingerprints); all && marks.executeStep();)
      all = there.contains(marks.getColumn(0).getString());
    if (!all)
      return fail(ErrorKind::exists,
                  "{}: it has runs already, and others than {}: expected an empty database",
                  to_.place(), migration_.file);
    return true;
  }

  Result<std::int64_t> copy(const std::string& table) {
    std::string columns, parameters, types;
    SQLite::Statement info(from_,
                           "SELECT name, type FROM pragma_table_info(?)"
                           " WHERE name NOT GLOB '*_sum'");
    info.bind(1, table);
    for (int n = 1; info.executeStep(); ++n) {
      const std::string type = info.getColumn(1).getString();
      columns += (n == 1 ? "" : ", ") + info.getColumn(0).getString();
      parameters += fmt::format("{}${}::{}[]", n == 1 ? "" : ", ", n,
                                type == "TEXT"   ? "text"
                                : type == "REAL" ? "double precision"
                                                 : "bigint");
    }
    const std::string insert =
        fmt::format("INSERT INTO {} ({}) SELECT * FROM unnest({})", table, columns, parameters);
    SQLite::Statement rows(from_, fmt::format("SELECT {} FROM {}", columns, table));
    std::int64_t count = 0;
    for (bool more = true; more;) {
      Lists lists;
      while (lists.rows() < kRowsAtOnce && (more = rows.executeStep())) append(lists, rows);
      if (lists.empty()) break;
      Statements statements;
      add(statements, insert.c_str(), lists);
      BERTH_TRY(to_.step(statements));
      count += static_cast<std::int64_t>(lists.rows());
      migration_.on_progress(table, count);
    }
    return count;
  }

  static void append(Lists& lists, SQLite::Statement& row) {
    std::vector<Sql> values;
    for (int i = 0; i < row.getColumnCount(); ++i) {
      const SQLite::Column column = row.getColumn(i);
      values.push_back(column.isNull()      ? std::nullopt
                       : column.isInteger() ? to_sql(std::int64_t{column.getInt64()})
                       : column.isFloat()   ? to_sql(column.getDouble())
                                            : to_sql(column.getString()));
    }
    lists.add_row(values);
  }

  std::int64_t last_given(const char* table) {
    SQLite::Statement given(from_, "SELECT seq FROM sqlite_sequence WHERE name = ?");
    given.bind(1, table);
    return given.executeStep() ? given.getColumn(0).getInt64() : 0;
  }

  SQLite::Database& from_;
  Session& to_;
  const Migration& migration_;
};

std::vector<std::string> open_runs(SQLite::Database& file) {
  std::vector<std::string> names;
  SQLite::Statement runs(file, "SELECT name FROM run WHERE state <> 'done' ORDER BY id");
  while (runs.executeStep()) names.push_back(runs.getColumn(0).getString());
  return names;
}

}  // namespace

Result<Migrated> migrate(const Migration& migration) {
  BERTH_ASSIGN(const auto session, Session::open(migration.url, kPatience));
  BERTH_ASSIGN(const auto file, open_database(migration.file));
  try {
    Transaction::Statements statements(*file);
    Transaction closed(statements, statements.write);
    BERTH_TRY(migration.keep_runners_out(open_runs(*file)));
    BERTH_ASSIGN(auto migrated, Move(*file, *session, migration).all());
    BERTH_TRY(migration.conclude(migrated));
    file->exec(kClose);
    closed.commit();
    return migrated;
  } catch (const SQLite::Exception& error) {
    return std::unexpected(explain(migration.file, error));
  }
}

}  // namespace berth::store
