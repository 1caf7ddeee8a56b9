// This is what sqlite_store.cc needs of SQLite: a file is opened and brought to the current schema,
// statements take and return typed values, transactions end, and errors say what to do. Everything
// but open_database(), check_in_place() and explain() throws SQLite::Exception.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/base/time.h"
#include "berth/store/causes_by_name.h"
#include "berth/store/records.h"
#include "berth/store/row_sum.h"
#include "berth/store/store.h"

namespace berth::store {

/// The SQL at place i brings a file of version i + 1 to version i + 2. All of them together lead to
/// schema.sql.
using Migrations = std::span<const char* const>;
inline constexpr std::array kSteps = {
    "ALTER TABLE attempt ADD COLUMN devices TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE task ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE task ADD COLUMN digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN depends TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE result (sequence INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE,"
    " outputs TEXT NOT NULL, origin TEXT NOT NULL, used_ns INTEGER NOT NULL) STRICT",
    // 5 to 6
    "ALTER TABLE run ADD COLUMN result TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE run ADD COLUMN phase TEXT NOT NULL DEFAULT 'init'"
    " CHECK (phase IN ('init', 'eval', 'retry', 'done'));"
    "ALTER TABLE run ADD COLUMN alloc TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE run ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE run ADD COLUMN last_try_ns INTEGER;"
    "UPDATE run SET phase = 'done' WHERE state IN ('done', 'failed', 'stopped')",
    // 6 to 7: a flow's task that was done without an attempt was skipped.
    "ALTER TABLE run ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0);"
    "CREATE TABLE task_7 (run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,"
    " number INTEGER NOT NULL, label TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waiting'"
    " CHECK (state IN ('waiting', 'running', 'done', 'cached', 'skipped', 'failed', 'stopped')),"
    " token INTEGER NOT NULL DEFAULT 0, params_json TEXT NOT NULL,"
    " forgiven INTEGER NOT NULL DEFAULT 0, digest TEXT NOT NULL DEFAULT '',"
    " depends TEXT NOT NULL DEFAULT '', PRIMARY KEY (run_id, number), UNIQUE (run_id, label))"
    " STRICT, WITHOUT ROWID;"
    "INSERT INTO task_7 SELECT run_id, number, label,"
    " CASE WHEN task.state = 'done' AND token = 0 AND kind = 'flow' THEN 'skipped'"
    " ELSE task.state END, token, params_json, forgiven, digest, depends"
    " FROM task JOIN run ON run.id = run_id;"
    "DROP TABLE task; ALTER TABLE task_7 RENAME TO task;"
    "UPDATE run SET skipped = n, done = done - n FROM (SELECT run_id, count(*) AS n FROM task"
    " WHERE state = 'skipped' GROUP BY run_id) WHERE id = run_id",
    // 7 to 8: the cause of an end was what people read of it, "exit 3" or "time limit".
    "ALTER TABLE run ADD COLUMN runner_host TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE attempt ADD COLUMN signal INTEGER NOT NULL DEFAULT 0;"
    "UPDATE attempt SET cause = 'exit_code',"
    " exit_code = coalesce(exit_code, CAST(substr(cause, 6) AS INTEGER))"
    " WHERE cause GLOB 'exit [-0-9]*' AND NOT substr(cause, 7) GLOB '*[^0-9]*';"
    "UPDATE attempt SET cause = 'signal', signal = CAST(substr(cause, 8) AS INTEGER)"
    " WHERE cause GLOB 'signal [0-9]* (*)';" BERTH_CAUSES_BY_NAME,
    // 8 to 9
    "ALTER TABLE attempt ADD COLUMN lease_ns INTEGER",
    // 9 to 10: rows of before have no sums.
    "ALTER TABLE run ADD COLUMN name_sum INTEGER;"
    "ALTER TABLE run ADD COLUMN result_sum INTEGER;"
    "ALTER TABLE run_spec ADD COLUMN row_sum INTEGER;"
    "ALTER TABLE task ADD COLUMN label_sum INTEGER;"
    "ALTER TABLE task ADD COLUMN params_sum INTEGER;"
    "ALTER TABLE task ADD COLUMN key_sum INTEGER;"
    "ALTER TABLE attempt ADD COLUMN begin_sum INTEGER;"
    "ALTER TABLE attempt ADD COLUMN end_sum INTEGER;"
    "ALTER TABLE metric ADD COLUMN row_sum INTEGER;"
    "ALTER TABLE metric_last ADD COLUMN row_sum INTEGER;"
    "ALTER TABLE result ADD COLUMN row_sum INTEGER",
};
inline constexpr Migrations kMigrations = kSteps;

/// Opens the file as sqlite_store() says. A file that may only be read is opened for reading, and
/// changes of it are denied.
Result<std::unique_ptr<SQLite::Database>> open_database(const std::string& file,
                                                        Migrations migrations = kMigrations);

/// stale: the file or its log is no longer where it was opened, so that nobody else will ever read
/// what this handle writes.
Status check_in_place(SQLite::Database& db, const std::string& file);

/// Gives unused pages of the file back to the file system, as far as that takes about a second. The
/// file of an earlier Berth is copied for that once, when half of it is unused. What fails is tried
/// again by the next call.
void shrink(SQLite::Database& db);

/// Makes an error of an extended result code: "file: message; what to do".
Error explain(const std::string& file, int code, std::string_view message);
Error explain(const std::string& file, const SQLite::Exception& error);

/// Whether a file system with this f_type of statfs(2) shares files between hosts.
bool is_network_file_system(std::uint64_t type);

/// A row whose sum is not that of its values.
class RowDamaged : public SQLite::Exception {
 public:
  using SQLite::Exception::Exception;
};

/// One execution of a prepared statement with its values. The statement is reset when the object
/// goes, so that none keeps a lock. A NaN is bound as NULL and read back as NaN; states and causes
/// are their names, parameters are JSON. A column that is none of them throws as a corrupt file
/// does.
class Query {
 public:
  template <class... Parameters>
  explicit Query(SQLite::Statement& statement, const Parameters&... values)
      : statement_(statement) {
    int index = 0;
    (bind(++index, values), ...);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() { statement_.tryReset(); }

  /// Whether there is another row.
  bool next() { return statement_.executeStep(); }
  /// Executes the statement to its end; returns how many rows it changed.
  int run() {
    while (next()) continue;
    return statement_.getChanges();
  }
  /// Reads the row's columns in order. Errors are exceptions; sql.h wants a Status.
  template <class... Columns>
  Status read(Columns&... values) {
    next_ = 0;
    (column(next_++, values), ...);
    return {};
  }
  /// Compares the next column, a RowSum, with the values that it covers, the first of which names
  /// the row: "the label of task" 5. Throws as for a corrupt file.
  template <class First, class... Values>
  Status check(const char* what, const First& first, const Values&... values) {
    const SQLite::Column found = statement_.getColumn(next_++);
    if (!found.isNull() && found.getInt() != sum_of(first, values...).value)
      throw_damaged(what, to_name(first));
    return {};
  }

 private:
  void bind(int index, std::int64_t value) { statement_.bind(index, value); }
  void bind(int index, int value) { statement_.bind(index, value); }
  void bind(int index, double value) { statement_.bind(index, value); }
  void bind(int index, const std::string& value) { statement_.bind(index, value); }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void bind(int index, Enum value) {
    statement_.bindNoCopy(index, stored_name(value).data());
  }
  void bind(int index, std::optional<exec::Cause> value) {
    value ? bind(index, *value) : statement_.bindNoCopy(index, "");
  }
  void bind(int index, const Values& value) { bind(index, to_json(value)); }
  void bind(int index, Wall value) { bind(index, value.time_since_epoch().count()); }
  template <class Tag>
  void bind(int index, Id<Tag> value) {
    bind(index, value.value);
  }
  void bind(int index, const RowSum& sum) { bind(index, sum.value); }
  void bind(int index, const std::optional<int>& value) {
    value ? statement_.bind(index, *value) : statement_.bind(index);
  }
  void bind(int index, const std::optional<Wall>& value) {
    value ? bind(index, *value) : statement_.bind(index);
  }
  void bind(int index, const std::optional<std::int64_t>& value) {
    value ? bind(index, *value) : statement_.bind(index);
  }

  void column(int index, std::int64_t& value) { value = typed(index, SQLITE_INTEGER).getInt64(); }
  void column(int index, double& value);
  void column(int index, std::string& value) { value = typed(index, SQLITE_TEXT).getString(); }
  void column(int index, RunState& value);
  void column(int index, TaskState& value);
  void column(int index, Phase& value);
  void column(int index, Values& value);
  void column(int index, Wall& value) {
    value = Wall(Duration(typed(index, SQLITE_INTEGER).getInt64()));
  }
  template <class Tag>
  void column(int index, Id<Tag>& value) {
    column(index, value.value);
  }
  void column(int index, int& value) { value = typed(index, SQLITE_INTEGER).getInt(); }
  template <class Value>
  void column(int index, std::optional<Value>& value) {
    value.reset();
    if (!statement_.getColumn(index).isNull()) column(index, value.emplace());
  }

  /// The tables are STRICT: a value of another type is that of another table's row.
  SQLite::Column typed(int index, int type) {
    SQLite::Column found = statement_.getColumn(index);
    if (found.getType() != type) throw_wrong_type();
    return found;
  }
  template <class Tag>
  static std::string to_name(Id<Tag> id) {
    return std::to_string(id.value);
  }
  static std::string to_name(const std::string& text) { return text; }
  [[noreturn]] static void throw_wrong_type();
  [[noreturn]] static void throw_damaged(const char* what, const std::string& which);

  SQLite::Statement& statement_;
  int next_ = 0;  // the column behind those that were read
};

/// A transaction, which is rolled back when the object goes, unless commit() returned.
class Transaction {
 public:
  struct Statements {
    explicit Statements(SQLite::Database& database) : db(database) {}
    SQLite::Database& db;
    SQLite::Statement read{db, "BEGIN"};
    SQLite::Statement write{db, "BEGIN IMMEDIATE"};
    SQLite::Statement commit{db, "COMMIT"};
    SQLite::Statement rollback{db, "ROLLBACK"};
  };

  /// `begin` is statements.read, which sees one state of the store throughout, or statements.write,
  /// which waits for other writers as long as the busy timeout.
  Transaction(Statements& statements, SQLite::Statement& begin) : statements_(statements) {
    Query(begin).run();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  void commit() { Query(statements_.commit).run(); }

 private:
  Statements& statements_;
};

}  // namespace berth::store
