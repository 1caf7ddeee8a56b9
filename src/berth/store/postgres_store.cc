#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/store/database.h"
#include "berth/store/postgres_session.h"
#include "berth/store/records.h"
#include "berth/store/sql.h"
#include "berth/store/store.h"
#include "berth/store/transition.h"

namespace berth::store {
namespace {

/// Of a submission in one statement: the server's memory is not to grow with it.
constexpr std::size_t kTasksAtOnce = 20'000;

/// Runs are driven by who has this lock of the database.
constexpr std::int64_t lock_of(RunId run) {
  return (std::int64_t{0x42727468} << 32) | (run.value & 0xffffffff);
}

constexpr const char* kSubmit =
    "WITH counter AS (INSERT INTO name_counter (name, issued) VALUES ($1, 1)"
    " ON CONFLICT (name) DO UPDATE SET issued = name_counter.issued + 1 RETURNING issued)"
    " INSERT INTO run (name, kind, directory, priority, created_ns, waiting)"
    " SELECT $1 || '-' || issued, $2, $3, $4, $5, $6 FROM counter"
    " RETURNING " BERTH_RUN_COLUMNS;
constexpr const char* kForgetWriters = "DELETE FROM writer WHERE at < now() - interval '30 days'";
constexpr const char* kLockRun = "SELECT id FROM run WHERE id = $1 FOR UPDATE";
constexpr const char* kLockRunRow = BERTH_RUN_ROW " FOR UPDATE";
constexpr const char* kTaskRows =
    "SELECT number, state, token, forgiven FROM task"
    " WHERE run_id = $1 AND number = ANY ($2::bigint[])";
constexpr const char* kLabels =
    "SELECT label FROM task WHERE run_id = $1 AND label = ANY ($2::text[])";
constexpr const char* kRemoveRun[] = {
    "DELETE FROM metric_last WHERE run_id = $1", "DELETE FROM metric WHERE run_id = $1",
    "DELETE FROM attempt WHERE run_id = $1",     "DELETE FROM task WHERE run_id = $1",
    "DELETE FROM run_spec WHERE run_id = $1",    "DELETE FROM run WHERE id = $1",
};

/// $1: the run; then a list a column.
constexpr RowStatements kWriteAll = {
    .add_task =
        "INSERT INTO task (run_id, number, label, params_json)"
        " SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[], $4::text[])",
    .change_task =
        "UPDATE task SET state = new.state, token = new.token, forgiven = new.forgiven"
        " FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[])"
        " AS new (number, state, token, forgiven) WHERE run_id = $1 AND task.number = new.number",
    .change_keyed_task =
        "UPDATE task SET state = new.state, token = new.token, forgiven = new.forgiven,"
        " digest = new.digest, depends = new.depends FROM unnest($2::bigint[], $3::text[],"
        " $4::bigint[], $5::bigint[], $6::text[], $7::text[])"
        " AS new (number, state, token, forgiven, digest, depends)"
        " WHERE run_id = $1 AND task.number = new.number",
    .key_task =
        "UPDATE task SET digest = new.digest, depends = new.depends"
        " FROM unnest($2::bigint[], $3::text[], $4::text[]) AS new (number, digest, depends)"
        " WHERE run_id = $1 AND task.number = new.number",
    .set_params =
        "UPDATE task SET params_json = new.params FROM unnest($2::bigint[], $3::text[])"
        " AS new (number, params) WHERE run_id = $1 AND task.number = new.number",
    .add_attempt =
        "INSERT INTO attempt (run_id, task, token, started_ns, resources, host, devices, ended_ns,"
        " cause, exit_code, signal, detail, cpu_ms, peak_mem, log_begin, log_end, lease_ns)"
        " SELECT $1::bigint, * FROM"
        " unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],"
        " $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bigint[],"
        " $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[])",
    .keep_attempt =
        "UPDATE attempt SET lease_ns = new.lease_ns FROM unnest($2::bigint[], $3::bigint[],"
        " $4::bigint[]) AS new (task, token, lease_ns)"
        " WHERE run_id = $1 AND attempt.task = new.task AND attempt.token = new.token",
    .place_attempt =
        "UPDATE attempt SET devices = new.devices, started_ns = coalesce(new.started_ns,"
        " attempt.started_ns) FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[])"
        " AS new (task, token, devices, started_ns)"
        " WHERE run_id = $1 AND attempt.task = new.task AND attempt.token = new.token",
    .end_attempt =
        "UPDATE attempt SET ended_ns = new.ended_ns, cause = new.cause, exit_code = new.exit_code,"
        " signal = new.signal, detail = new.detail, cpu_ms = new.cpu_ms, peak_mem = new.peak_mem,"
        " log_begin = new.log_begin, log_end = new.log_end FROM unnest($2::bigint[],"
        " $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],"
        " $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]) AS new (task, token, ended_ns,"
        " cause, exit_code, signal, detail, cpu_ms, peak_mem, log_begin, log_end)"
        " WHERE run_id = $1 AND attempt.task = new.task AND attempt.token = new.token",
    .add_metric =
        "INSERT INTO metric (run_id, task, token, sequence, name, value, at_ns)"
        " SELECT $1::bigint, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[],"
        " $5::text[], $6::double precision[], $7::bigint[])",
    .keep_last_metric =
        "INSERT INTO metric_last (run_id, task, name, value, first_sequence)"
        " SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[],"
        " $4::double precision[], $5::bigint[])"
        " ON CONFLICT (run_id, task, name) DO UPDATE SET value = excluded.value",
};
/// The row of `store` stays locked until the commit: no sequence number is seen before a smaller
/// one.
constexpr const char* kKeepResults =
    "WITH before AS (UPDATE store SET results_kept = results_kept + $1"
    " RETURNING results_kept - $1 AS sequence)"
    " INSERT INTO result (sequence, digest, outputs, origin, used_ns)"
    " SELECT before.sequence + new.nth, digest, outputs, origin, used_ns FROM before,"
    " unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[])"
    " AS new (nth, digest, outputs, origin, used_ns)"
    " ON CONFLICT (digest) DO UPDATE SET sequence = CASE"
    " WHEN (result.outputs, result.origin) = (excluded.outputs, excluded.origin)"
    " THEN result.sequence ELSE excluded.sequence END, outputs = excluded.outputs,"
    " origin = excluded.origin, used_ns = excluded.used_ns";

void add_writes(Statements& statements, RunId run, const RowWrites& rows) {
  const char* latest = nullptr;
  Lists lists;
  const auto flush = [&] {
    if (!lists.empty()) add(statements, latest, run, lists);
    lists = Lists();
  };
  write_rows(kWriteAll, rows, [&](const char* sql, const auto&... values) {
    if (sql != latest) flush();
    latest = sql;
    lists.add(values...);
  });
  flush();
  write_run(rows,
            [&](const char* sql, const auto&... values) { add(statements, sql, run, values...); });
  if (rows.results.empty()) return;
  std::set<std::string_view> digests;  // a statement may write no row twice: the last one is kept
  for (auto nth = rows.results.size(); nth > 0; --nth) {
    const ResultKept& kept = *rows.results[nth - 1];
    if (digests.insert(kept.digest).second)
      lists.add(static_cast<std::int64_t>(nth), kept.digest, kept.outputs, kept.origin, kept.at);
  }
  add(statements, kKeepResults, static_cast<std::int64_t>(rows.results.size()), lists);
}

/// The answers to kLockRunRow, then to kTaskRows, and to kLabels where it was asked.
Result<CurrentRows> read_rows(std::vector<Rows>& answers, RunId run) {
  CurrentRows rows;
  BERTH_ASSIGN(rows.run, read_run_row(answers[0], run));
  BERTH_TRY(read_task_rows(answers[1], rows));
  std::string label;
  while (answers.size() > 2 && answers[2].next()) {
    BERTH_TRY(answers[2].read(label));
    rows.labels.insert(label);
  }
  return rows;
}

template <class Value>
Lists list_of(const std::vector<Value>& values) {
  Lists list(1);
  for (const Value& value : values) list.add(value);
  return list;
}

/// Let go of with the claim.
class Driving final : public Claim {
 public:
  Driving(std::weak_ptr<Session> session, std::int64_t key)
      : session_(std::move(session)), key_(key) {}
  ~Driving() override {
    if (const auto session = session_.lock()) session->unlock(key_);
  }

 private:
  std::weak_ptr<Session> session_;
  std::int64_t key_;
};

class PostgresStore final : public Store {
 public:
  PostgresStore(std::shared_ptr<Session> session, std::string host)
      : session_(std::move(session)), host_(std::move(host)) {}

  Result<RunRecord> submit(const NewRun& run) override {
    BERTH_TRY(validate(run));
    Statements first;
    add(first, kSubmit, run.name, run.kind, run.directory, run.priority, run.created,
        static_cast<std::int64_t>(run.tasks.size()));
    return session_->write(first, [&](auto& rows, auto& last) -> Result<RunRecord> {
      rows[0].next();
      BERTH_ASSIGN(RunRecord record, read_run(rows[0]));
      record.spec_json = run.spec_json;
      add(last, kAddSpecification, record.id, run.spec_json);
      Lists tasks;
      for (std::size_t i = 0; i < run.tasks.size(); ++i) {
        tasks.add(static_cast<std::int64_t>(i + 1), run.tasks[i].label, run.tasks[i].params);
        if (tasks.rows() < kTasksAtOnce && i + 1 < run.tasks.size()) continue;
        add(last, kWriteAll.add_task, record.id, tasks);
        tasks = Lists();
      }
      add(last, kForgetWriters);
      return record;
    });
  }

  Result<RunRecord> take_over(RunId run, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    Statements first;
    add(first, kLockRunRow, run);
    add(first, kUnfinishedTasks, run);
    add(first, kSpecification, run);
    auto taken = session_->write(first, [&](auto& rows, auto& last) -> Result<RunRecord> {
      CurrentRows current;
      BERTH_ASSIGN(current.run, read_run_row(rows[0], run));
      BERTH_TRY(read_task_rows(rows[1], current));
      auto writes =
          store::take_over(std::move(current), {runner_pid, runner_started_at, host_, alive}, now);
      add_writes(last, run, writes);
      rows[2].next();
      BERTH_TRY(rows[2].read(writes.run.record.spec_json));
      return std::move(writes.run.record);
    });
    if (taken) epochs_[run] = taken->epoch;
    return taken;
  }

  Result<Applied> apply(RunId run, std::span<const Change> changes) override {
    const RowsWanted wanted = rows_wanted(changes);
    Statements first;
    add(first, kLockRunRow, run);
    add(first, kTaskRows, run, list_of(wanted.tasks));
    if (!wanted.labels.empty()) add(first, kLabels, run, list_of(wanted.labels));
    const auto ours = epochs_.find(run);
    const auto epoch = ours == epochs_.end() ? std::nullopt : std::optional(ours->second);
    return session_->write(first, [&](auto& answers, auto& last) -> Result<Applied> {
      BERTH_ASSIGN(CurrentRows rows, read_rows(answers, run));
      BERTH_ASSIGN(const RowWrites writes, transition(std::move(rows), changes, epoch));
      add_writes(last, run, writes);
      return writes.applied;
    });
  }

  Result<std::unique_ptr<Claim>> claim(RunId run) {
    BERTH_TRY(session_->lock(lock_of(run)));
    return std::make_unique<Driving>(session_, lock_of(run));
  }

  Result<std::optional<Duration>> keep_claims() { return session_->keep_locks(); }
  void wait_with(WaitForStore wait) { session_->wait_with(std::move(wait)); }

  Status remove(RunId run) override {
    Statements first;
    add(first, kLockRun, run);
    return session_->write(first, [&](auto& rows, auto& last) -> Status {
      if (!rows[0].next()) return no_run(run);
      for (const char* sql : kRemoveRun) add(last, sql, run);
      return {};
    });
  }

  Result<ResultRecord> result(const std::string& digest) override {
    BERTH_ASSIGN(auto rows, ask(kResultByDigest, digest));
    return read_result(rows, digest);
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    BERTH_ASSIGN(auto rows, ask(kListResults, after));
    return read_results(rows);
  }

  Result<std::int64_t> forget_results(Wall unused_since) override {
    Statements first;
    add(first, "SELECT one FROM store FOR UPDATE");  // nothing is kept meanwhile
    add(first, kForgetResults, unused_since);
    return session_->write(
        first, [](auto& rows, auto&) -> Result<std::int64_t> { return rows[1].changed(); });
  }

  Result<std::vector<RunRecord>> runs() override {
    BERTH_ASSIGN(auto rows, ask(kListRuns));
    return read_runs(rows);
  }

  Result<RunRecord> find_run(std::string_view name) override {
    BERTH_ASSIGN(auto rows, ask(kRunByName, std::string(name)));
    return read_named_run(rows, name);
  }

  Result<std::vector<TaskRecord>> tasks(RunId run) override {
    Statements reads;
    add(reads, kFindRun, run);
    ask_tasks(reads, run, kFirstTask, kLastTask);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    if (!answers[0].next()) return no_run(run);
    return read_tasks(answers[1], answers[2], answers[3], kFirstTask);
  }

  Result<TaskRecord> find_task(RunId run, std::string_view label) override {
    BERTH_ASSIGN(auto found, ask(kTaskByLabel, run, std::string(label)));
    if (!found.next())
      return fail(ErrorKind::not_found, "run {} has no task '{}'", run.value, clip(label));
    TaskNumber number;
    BERTH_TRY(found.read(number));
    Statements reads;
    ask_tasks(reads, run, number, number);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    BERTH_ASSIGN(auto tasks, read_tasks(answers[0], answers[1], answers[2], number));
    if (tasks.empty()) return no_run(run);  // removed in between
    return std::move(tasks.front());
  }

  Result<News> news(RunId run, std::span<const TaskNumber> open, TaskNumber last) override {
    Statements reads;
    add(reads, BERTH_RUN_ROW, run);
    const auto ranges = ranges_of(open);
    for (const TaskRange& range : ranges) ask_tasks(reads, run, range.first, range.last);
    ask_tasks(reads, run, {last.value + 1}, kLastTask);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    BERTH_ASSIGN(RunRow row, read_run_row(answers[0], run));
    News news{std::move(row.record), row.last_token, {}};
    for (std::size_t at = 1; at < answers.size(); at += 3) {
      const auto nth = (at - 1) / 3;
      const bool is_open = nth < ranges.size();
      const TaskNumber first = is_open ? ranges[nth].first : TaskNumber{last.value + 1};
      BERTH_ASSIGN(auto found, read_tasks(answers[at], answers[at + 1], answers[at + 2], first));
      if (is_open && found.size() < ranges[nth].size()) return no_task(run, ranges[nth].last);
      std::ranges::move(found, std::back_inserter(news.tasks));
    }
    return news;
  }

  Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) override {
    BERTH_ASSIGN(auto rows, ask_of(run, task, kListAttempts));
    return read_attempts(rows, task);
  }

  Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task,
                                            std::int64_t after) override {
    BERTH_ASSIGN(auto rows, ask_of(run, task, kListMetrics, after));
    return read_metrics(rows, task);
  }

  Result<std::vector<Usage>> usage(RunId run) override {
    Statements reads;
    add(reads, kFindRun, run);
    add(reads, kAddUpUsage, run);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    if (!answers[0].next()) return no_run(run);
    return read_usage(answers[1]);
  }

 private:
  static void ask_tasks(Statements& reads, RunId run, TaskNumber first, TaskNumber last) {
    for (const char* sql : {kListTasks, kFoldAttempts, kLastMetrics})
      add(reads, sql, run, first, last);
  }
  template <class... Values>
  Result<Rows> ask(const char* sql, const Values&... values) {
    Statements reads;
    add(reads, sql, values...);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    return std::move(answers.front());
  }
  /// Of a task that has to be there.
  template <class... Values>
  Result<Rows> ask_of(RunId run, TaskNumber task, const char* sql, const Values&... values) {
    Statements reads;
    add(reads, kTaskByNumber, run, task);
    add(reads, sql, run, task, values...);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    if (!answers[0].next()) return no_task(run, task);
    return std::move(answers[1]);
  }

  std::shared_ptr<Session> session_;
  std::string host_;
  std::map<RunId, std::int64_t> epochs_;  // of runs that this store has taken over
};

}  // namespace

Result<std::unique_ptr<Claim>> claim(Store& store, RunId run) {
  if (auto* const shared = dynamic_cast<PostgresStore*>(&store)) return shared->claim(run);
  return std::make_unique<Claim>();
}

Result<std::optional<Duration>> keep_claims(Store& store) {
  auto* const shared = dynamic_cast<PostgresStore*>(&store);
  if (shared == nullptr) return std::nullopt;
  return shared->keep_claims();
}

void wait_with(Store& store, WaitForStore wait) {
  if (auto* const shared = dynamic_cast<PostgresStore*>(&store)) shared->wait_with(std::move(wait));
}

Result<Database> postgres_store(const std::string& url, const std::string& host,
                                Duration patience) {
  BERTH_ASSIGN(auto session,
               Session::open(url, std::chrono::duration_cast<std::chrono::milliseconds>(patience)));
  Database database{session->id(), session->place(), nullptr};
  database.store = std::make_unique<PostgresStore>(std::move(session), host);
  return database;
}

}  // namespace berth::store
