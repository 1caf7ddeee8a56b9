#include <sqlite3.h>

#include <algorithm>
#include <unordered_map>

#include "berth/base/text.h"
#include "berth/store/check.h"
#include "berth/store/records.h"
#include "berth/store/sql.h"
#include "berth/store/sqlite_database.h"
#include "berth/store/store.h"

namespace berth::store {
namespace {

constexpr const char* kNextNumber =
    "INSERT INTO name_counter (name, issued) VALUES ($1, 1)"
    " ON CONFLICT (name) DO UPDATE SET issued = issued + 1 RETURNING issued";
constexpr const char* kAddRun =
    "INSERT INTO run (name, kind, directory, priority, created_ns, waiting, name_sum)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id";
constexpr const char* kDeleteRun = "DELETE FROM run WHERE id = $1";
constexpr const char* kRunRow = BERTH_RUN_ROW;
constexpr const char* kTaskRow =
    "SELECT number, state, token, forgiven FROM task WHERE run_id = $1 AND number = $2";
constexpr const char* kUseResult =
    "UPDATE result SET used_ns = $4 WHERE digest = $1 AND outputs = $2 AND origin = $3";
constexpr const char* kKeepResult =
    "INSERT OR REPLACE INTO result (digest, outputs, origin, used_ns, row_sum)"
    " VALUES ($1, $2, $3, $4, $5)";
constexpr const char* kCountTasks =
    "SELECT waiting + running + done + cached + skipped + failed + stopped FROM run WHERE id = $1";
/// 9e999 is kMissing: such a value is in the table, but in no record.
constexpr const char* kHasMetrics =
    "SELECT 1 FROM metric_last WHERE run_id = $1 AND task = $2 AND value < 9e999 LIMIT 1";

constexpr RowStatements kWriteOne = {
    .add_task =
        "INSERT INTO task (run_id, number, label, params_json, label_sum, params_sum)"
        " VALUES ($1, $2, $3, $4, $5, $6)",
    .change_task =
        "UPDATE task SET state = $3, token = $4, forgiven = $5"
        " WHERE run_id = $1 AND number = $2",
    .change_keyed_task =
        "UPDATE task SET state = $3, token = $4, forgiven = $5, digest = $6, depends = $7,"
        " key_sum = $8"
        " WHERE run_id = $1 AND number = $2",
    .key_task =
        "UPDATE task SET digest = $3, depends = $4, key_sum = $5"
        " WHERE run_id = $1 AND number = $2",
    .set_params =
        "UPDATE task SET params_json = $3, params_sum = $4 WHERE run_id = $1 AND number = $2",
    .add_attempt =
        "INSERT INTO attempt (run_id, task, token, started_ns, resources, host, devices, ended_ns,"
        " cause, exit_code, signal, detail, cpu_ms, peak_mem, log_begin, log_end, lease_ns,"
        " begin_sum, end_sum) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,"
        " $15, $16, $17, $18, $19)",
    .keep_attempt =
        "UPDATE attempt SET lease_ns = $4 WHERE run_id = $1 AND task = $2 AND token = $3",
    .place_attempt =
        "UPDATE attempt SET devices = $4, started_ns = coalesce($5, started_ns)"
        " WHERE run_id = $1 AND task = $2 AND token = $3",
    .end_attempt =
        "UPDATE attempt SET ended_ns = $4, cause = $5, exit_code = $6, signal = $7, detail = $8,"
        " cpu_ms = $9, peak_mem = $10, log_begin = $11, log_end = $12, end_sum = $13"
        " WHERE run_id = $1 AND task = $2 AND token = $3",
    .add_metric =
        "INSERT INTO metric (run_id, task, token, sequence, name, value, at_ns, row_sum)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    .keep_last_metric =
        "INSERT INTO metric_last (run_id, task, name, value, first_sequence, row_sum)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run_id, task, name)"
        " DO UPDATE SET value = excluded.value, row_sum = excluded.row_sum",
};

constexpr std::size_t kMostDamages = 20;

/// Statements by their text, which is a constant: each is prepared when it is needed first.
class PreparedStatements : public Transaction::Statements {
 public:
  using Transaction::Statements::Statements;

  template <class... Values>
  Query operator()(const char* sql, const Values&... values) {
    auto found = by_text_.find(sql);
    if (found == by_text_.end()) {
      std::string text = sql;
      std::ranges::replace(text, '$', '?');
      for (const std::string_view mark : {"/*", "*/"})  // what this store alone has
        for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
          text.erase(at, mark.size());
      found = by_text_.try_emplace(sql, db, text).first;
    }
    return Query(found->second, values...);
  }

 private:
  std::unordered_map<const char*, SQLite::Statement> by_text_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string file, std::unique_ptr<SQLite::Database> db)
      : file_(std::move(file)), db_(std::move(db)), sql_(*db_) {}

  Result<RunRecord> submit(const NewRun& run) override {
    BERTH_TRY(validate(run));
    return writing([&]() -> Result<RunRecord> {
      std::int64_t number = 0;
      BERTH_TRY(first(number, kNextNumber, run.name));
      const std::string name = fmt::format("{}-{}", run.name, number);
      RunId id;
      BERTH_TRY(first(id, kAddRun, name, run.kind, run.directory, run.priority, run.created,
                      static_cast<std::int64_t>(run.tasks.size()),
                      sum_of(name, run.kind, run.directory)));
      sql_(kAddSpecification, id, run.spec_json, sum_of(id, run.spec_json)).run();
      TaskNumber task_number{0};
      for (const NewTask& task : run.tasks) {
        ++task_number.value;
        sql_(kWriteOne.add_task, id, task_number, task.label, task.params,
             sum_of_label(task_number, task.label), sum_of_params(task_number, task.params))
            .run();
      }
      return read_named_run(sql_(kRunByName, name), name);
    });
  }

  Result<RunRecord> take_over(RunId run, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    return writing([&]() -> Result<RunRecord> {
      CurrentRows rows;
      BERTH_ASSIGN(rows.run, read_run_row(sql_(kRunRow, run), run));
      BERTH_TRY(read_task_rows(sql_(kUnfinishedTasks, run), rows));
      auto writes = store::take_over(std::move(rows),
                                     {runner_pid, runner_started_at, /*host=*/"", alive}, now);
      write(run, writes);
      auto specification = sql_(kSpecification, run);
      if (!specification.next()) return no_run(run);
      BERTH_TRY(specification.read(writes.run.record.spec_json));
      BERTH_TRY(specification.check("the specification of run", run, writes.run.record.spec_json));
      return std::move(writes.run.record);
    });
  }

  Result<Applied> apply(RunId run, std::span<const Change> changes) override {
    return writing([&]() -> Result<Applied> {
      BERTH_ASSIGN(CurrentRows rows, read(run, rows_wanted(changes)));
      BERTH_ASSIGN(const RowWrites writes, transition(std::move(rows), changes));
      write(run, writes);
      return writes.applied;
    });
  }

  Status remove(RunId run) override {
    BERTH_TRY(writing([&]() -> Status {
      if (sql_(kDeleteRun, run).run() == 0) return no_run(run);
      return {};
    }));
    shrink(*db_);
    return {};
  }

  Result<ResultRecord> result(const std::string& digest) override {
    // One statement sees one state by itself.
    return caught([&]() -> Result<ResultRecord> {
      try {
        return read_result(sql_(kResultByDigest, digest), digest);
      } catch (const RowDamaged& damage) {  // the task runs again, and its result replaces the row
        return fail(ErrorKind::not_found, "{}: {}", file_, damage.what());
      }
    });
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    return reading([&] { return read_results(sql_(kListResults, after)); });
  }

  Result<std::int64_t> forget_results(Wall unused_since) override {
    auto removed =
        writing([&]() -> Result<std::int64_t> { return sql_(kForgetResults, unused_since).run(); });
    if (removed && *removed > 0) shrink(*db_);
    return removed;
  }

  Result<std::vector<RunRecord>> runs() override {
    return reading([&] { return read_runs(sql_(kListRuns)); });
  }

  Result<RunRecord> find_run(std::string_view name) override {
    return reading([&] { return read_named_run(sql_(kRunByName, std::string(name)), name); });
  }

  Result<std::vector<TaskRecord>> tasks(RunId run) override {
    return reading([&]() -> Result<std::vector<TaskRecord>> {
      std::int64_t count = 0;
      if (!first(count, kCountTasks, run)) return no_run(run);
      BERTH_ASSIGN(auto found, tasks(run, kFirstTask, kLastTask));
      if (std::ssize(found) == count) return found;
      return rows_missing("the row of", {std::min(std::ssize(found), count) + 1});
    });
  }

  Result<TaskRecord> find_task(RunId run, std::string_view label) override {
    return reading([&]() -> Result<TaskRecord> {
      TaskNumber number;
      if (!first(number, kTaskByLabel, run, std::string(label)))
        return fail(ErrorKind::not_found, "run {} has no task '{}'", run.value, clip(label));
      BERTH_ASSIGN(auto found, tasks(run, number, number));
      return std::move(found.front());
    });
  }

  Result<News> news(RunId run, std::span<const TaskNumber> open, TaskNumber last) override {
    return reading([&]() -> Result<News> {
      BERTH_ASSIGN(RunRow row, read_run_row(sql_(kRunRow, run), run));
      News news{std::move(row.record), row.last_token, {}};
      for (const TaskRange& range : ranges_of(open)) {
        BERTH_ASSIGN(auto found, tasks(run, range.first, range.last));
        if (found.size() < range.size()) return no_task(run, range.last);
        std::ranges::move(found, std::back_inserter(news.tasks));
      }
      BERTH_ASSIGN(auto added, tasks(run, {last.value + 1}, kLastTask));
      std::ranges::move(added, std::back_inserter(news.tasks));
      return news;
    });
  }

  Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) override {
    return reading([&]() -> Result<std::vector<AttemptRecord>> {
      if (!sql_(kTaskByNumber, run, task).next()) return no_task(run, task);
      return read_attempts(sql_(kListAttempts, run, task), task);
    });
  }

  Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task,
                                            std::int64_t after) override {
    return reading([&]() -> Result<std::vector<MetricRecord>> {
      if (!sql_(kTaskByNumber, run, task).next()) return no_task(run, task);
      BERTH_ASSIGN(auto found, read_metrics(sql_(kListMetrics, run, task, after), task));
      if (found.empty() && after == 0 && sql_(kHasMetrics, run, task).next())
        return rows_missing("the metrics of", task);
      return found;
    });
  }

  Result<std::vector<Usage>> usage(RunId run) override {
    return reading([&]() -> Result<std::vector<Usage>> {
      if (!sql_(kFindRun, run).next()) return no_run(run);
      return read_usage(sql_(kAddUpUsage, run));
    });
  }

  Result<std::vector<std::string>> find_structural_damage() {
    return reading([&]() -> Result<std::vector<std::string>> {
      std::vector<std::string> lines;
      SQLite::Statement check(*db_, fmt::format("PRAGMA integrity_check({})", kMostDamages));
      while (check.executeStep())
        if (auto line = check.getColumn(0).getString(); line != "ok")
          lines.push_back(std::move(line));
      SQLite::Statement references(*db_, "PRAGMA foreign_key_check");
      while (lines.size() < kMostDamages && references.executeStep())
        lines.push_back(fmt::format("a row of {} has no {}", references.getColumn(0).getString(),
                                    references.getColumn(2).getString()));
      return lines;
    });
  }

 private:
  /// Here exceptions end.
  template <class Body>
  auto caught(Body body) -> decltype(body()) {
    try {
      return body();
    } catch (const SQLite::Exception& error) {
      return std::unexpected(explain(file_, error));
    }
  }
  /// Runs `body` in a transaction; commits when it succeeds.
  template <class Body>
  auto within(SQLite::Statement& begin, Body body) -> decltype(body()) {
    return caught([&] {
      Transaction transaction(sql_, begin);
      auto result = body();
      if (result) transaction.commit();
      return result;
    });
  }
  template <class Body>
  auto writing(Body body) -> decltype(body()) {
    auto result = within(sql_.write, body);
    if (result) BERTH_TRY(check_in_place(*db_, file_));
    return result;
  }
  template <class Body>
  auto reading(Body body) -> decltype(body()) {
    return within(sql_.read, body);
  }

  /// The first column of the first row; not_found: there is no row.
  template <class Value, class... Values>
  Status first(Value& value, const char* sql, const Values&... values) {
    Query query = sql_(sql, values...);
    if (!query.next()) return fail(ErrorKind::not_found, "no row");
    return query.read(value);
  }

  Result<std::vector<TaskRecord>> tasks(RunId run, TaskNumber first, TaskNumber last) {
    return read_tasks(sql_(kListTasks, run, first, last), sql_(kFoldAttempts, run, first, last),
                      sql_(kLastMetrics, run, first, last), first);
  }

  Result<CurrentRows> read(RunId run, const RowsWanted& wanted) {
    CurrentRows rows;
    BERTH_ASSIGN(rows.run, read_run_row(sql_(kRunRow, run), run));
    for (const TaskNumber task : wanted.tasks)
      BERTH_TRY(read_task_rows(sql_(kTaskRow, run, task), rows));
    for (const std::string& label : wanted.labels)
      if (sql_(kTaskByLabel, run, label).next()) rows.labels.insert(label);
    return rows;
  }

  void write(RunId run, const RowWrites& rows) {
    const auto one = [&](const char* sql, const auto&... values) {
      sql_(sql, run, values...).run();
    };
    write_rows(kWriteOne, rows, one);
    for (const ResultKept* kept : rows.results)
      if (sql_(kUseResult, kept->digest, kept->outputs, kept->origin, kept->at).run() == 0)
        sql_(kKeepResult, kept->digest, kept->outputs, kept->origin, kept->at,
             sum_of(kept->digest, kept->outputs, kept->origin))
            .run();
    write_run(rows, one);
  }

  std::string file_;
  std::unique_ptr<SQLite::Database> db_;
  PreparedStatements sql_;
};

}  // namespace

Result<std::vector<std::string>> find_structural_damage(Store& store) {
  auto* const sqlite = dynamic_cast<SqliteStore*>(&store);
  if (sqlite == nullptr) return std::vector<std::string>();
  auto found = sqlite->find_structural_damage();
  if (!found && found.error().kind == ErrorKind::corrupt)
    return std::vector<std::string>{found.error().message};
  return found;
}

Result<std::unique_ptr<Store>> sqlite_store(const std::string& file) {
  BERTH_ASSIGN(auto db, open_database(file));
  try {
    return std::make_unique<SqliteStore>(file, std::move(db));
  } catch (const SQLite::Exception& error) {
    return std::unexpected(explain(file, error));
  }
}

}  // namespace berth::store
