#include <algorithm>
#include <limits>
#include <map>

#include "berth/base/text.h"
#include "berth/store/database.h"
#include "berth/store/postgres_batch.h"
#include "berth/store/postgres_session.h"
#include "berth/store/records.h"
#include "berth/store/store.h"

namespace berth::store {
namespace {

/// Of a submission in one statement: the server's memory is not to grow with it.
constexpr std::size_t kTasksAtOnce = 20'000;

/// Runs are driven by who has this lock of the database.
constexpr std::int64_t lock_of(RunId run) {
  return (std::int64_t{0x42727468} << 32) | (run.value & 0xffffffff);
}

/// The columns of a run, for read_run(), behind "SELECT" or "RETURNING".
#define BERTH_RUN_COLUMNS                                                                    \
  "run.id, name, kind, directory, priority, state, created_ns, started_ns, ended_ns, error," \
  " epoch, runner_pid, runner_started_at, runner_host, result, phase, alloc, tries,"         \
  " last_try_ns, waiting, running, done, cached, skipped, failed, stopped"
constexpr const char* kSubmit =
    "WITH counter AS (INSERT INTO name_counter (name, issued) VALUES ($1, 1)"
    " ON CONFLICT (name) DO UPDATE SET issued = name_counter.issued + 1 RETURNING issued)"
    " INSERT INTO run (name, kind, directory, priority, created_ns, waiting)"
    " SELECT $1 || '-' || issued, $2, $3, $4, $5, $6 FROM counter"
    " RETURNING " BERTH_RUN_COLUMNS;
constexpr const char* kAddSpec = "INSERT INTO run_spec (run_id, spec_json) VALUES ($1, $2)";
constexpr const char* kForgetWriters = "DELETE FROM writer WHERE at < now() - interval '30 days'";

constexpr const char* kFindRun = "SELECT id FROM run WHERE id = $1";
constexpr const char* kLockRun = "SELECT id FROM run WHERE id = $1 FOR UPDATE";
constexpr const char* kEndLostAttempts =
    "UPDATE attempt SET ended_ns = $2, cause = 'runner lost' FROM task"
    " WHERE task.run_id = $1 AND task.state = 'running' AND attempt.run_id = $1"
    " AND attempt.task = task.number AND attempt.token = task.token"
    " AND task.token <> ALL ($3::bigint[])";
constexpr const char* kWakeTasks =
    "UPDATE task SET state = 'waiting' WHERE run_id = $1 AND"
    " (state = 'stopped' OR (state = 'running' AND token <> ALL ($2::bigint[])))";
constexpr const char* kNextEpoch =
    "UPDATE run SET epoch = epoch + 1, runner_pid = $2, runner_started_at = $3, runner_host = $4,"
    " last_token = greatest(last_token, (epoch + 1) << 32),"
    " waiting = waiting + run.running + stopped - still.running, running = still.running,"
    " stopped = 0"
    " FROM (SELECT count(*) AS running FROM task WHERE run_id = $1 AND state = 'running') AS still"
    " WHERE id = $1";

constexpr const char* kRemoveRun[] = {
    "DELETE FROM metric_last WHERE run_id = $1", "DELETE FROM metric WHERE run_id = $1",
    "DELETE FROM attempt WHERE run_id = $1",     "DELETE FROM task WHERE run_id = $1",
    "DELETE FROM run_spec WHERE run_id = $1",    "DELETE FROM run WHERE id = $1",
};
constexpr const char* kForgetResults =
    "DELETE FROM result WHERE used_ns < $1 AND digest NOT IN"
    " (SELECT task.digest FROM task JOIN run ON run.id = task.run_id WHERE run.state <> 'done')";

constexpr const char* kListRuns = "SELECT " BERTH_RUN_COLUMNS " FROM run ORDER BY run.id";
constexpr const char* kRunById =
    "SELECT " BERTH_RUN_COLUMNS
    ", spec_json FROM run JOIN run_spec ON run_id = run.id WHERE run.id = $1";
constexpr const char* kRunByName =
    "SELECT " BERTH_RUN_COLUMNS
    ", spec_json FROM run JOIN run_spec ON run_id = run.id WHERE name = $1";
#undef BERTH_RUN_COLUMNS
constexpr const char* kListTasks =
    "SELECT number, label, state, token, params_json, forgiven, digest, depends FROM task"
    " WHERE run_id = $1 AND number BETWEEN $2 AND $3 ORDER BY number";
constexpr const char* kFoldAttempts =
    "SELECT task, started_ns, ended_ns, exit_code, cause, resources, host, devices FROM attempt"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, token";
constexpr const char* kLastMetrics =
    "SELECT task, name, value FROM metric_last"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, first_sequence";
constexpr const char* kTaskByLabel = "SELECT number FROM task WHERE run_id = $1 AND label = $2";
constexpr const char* kTaskByNumber = "SELECT number FROM task WHERE run_id = $1 AND number = $2";
constexpr const char* kListAttempts =
    "SELECT token, started_ns, ended_ns, exit_code, cause, detail, resources, host, cpu_ms,"
    " peak_mem, log_begin, log_end, devices FROM attempt WHERE run_id = $1 AND task = $2"
    " ORDER BY token";
constexpr const char* kAddUpUsage =
    "SELECT resources, sum(ended_ns - started_ns)::bigint FROM attempt"
    " WHERE run_id = $1 AND ended_ns IS NOT NULL GROUP BY resources"
    " ORDER BY resources COLLATE \"C\"";
constexpr const char* kListMetrics =
    "SELECT token, name, value, at_ns, sequence FROM metric WHERE run_id = $1 AND task = $2"
    " ORDER BY sequence";
constexpr const char* kResultByDigest =
    "SELECT digest, outputs, origin, used_ns, sequence FROM result WHERE digest = $1";
constexpr const char* kListResults =
    "SELECT digest, outputs, origin, used_ns, sequence FROM result WHERE sequence > $1"
    " ORDER BY sequence";

template <class... More>
Result<RunRecord> read_run(Rows& rows, More&... more) {
  RunRecord run;
  Counts& n = run.counts;
  BERTH_TRY(rows.read(run.id, run.name, run.kind, run.directory, run.priority, run.state,
                      run.created, run.started, run.ended, run.error, run.epoch, run.runner_pid,
                      run.runner_started_at, run.runner_host, run.result, run.phase, run.alloc,
                      run.tries, run.last_try, n.waiting, n.running, n.done, n.cached, n.skipped,
                      n.failed, n.stopped, more...));
  return run;
}

Result<RunRecord> read_whole_run(Rows& rows) {
  std::string spec;
  BERTH_ASSIGN(RunRecord run, read_run(rows, spec));
  run.spec_json = std::move(spec);
  return run;
}

Result<ResultRecord> read_result(Rows& rows) {
  ResultRecord record;
  BERTH_TRY(rows.read(record.digest, record.outputs, record.origin, record.used, record.sequence));
  return record;
}

double number_of(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

void ask_tasks(Statements& reads, RunId run, TaskNumber first, TaskNumber last) {
  for (const char* sql : {kListTasks, kFoldAttempts, kLastMetrics})
    add(reads, sql, run, first, last);
}

/// The answers to ask_tasks(): three scans in the order of their keys, laid side by side.
Result<std::vector<TaskRecord>> read_tasks(std::span<Rows> answers, TaskNumber first) {
  std::vector<TaskRecord> tasks;
  while (answers[0].next()) {
    TaskRecord& task = tasks.emplace_back();
    BERTH_TRY(answers[0].read(task.number, task.label, task.state, task.token, task.params,
                              task.forgiven, task.digest, task.depends));
  }
  // Numbers have no gaps, so that a number is a place.
  const auto at = [&](TaskNumber number) -> Result<TaskRecord*> {
    const auto place = static_cast<std::size_t>(number.value - first.value);
    if (place >= tasks.size()) return fail(ErrorKind::corrupt, "a row without its task");
    return &tasks[place];
  };
  TaskNumber number;
  while (answers[1].next()) {
    AttemptRecord attempt;
    BERTH_TRY(answers[1].read(number, attempt.started, attempt.ended, attempt.exit_code,
                              attempt.cause, attempt.resources, attempt.host, attempt.devices));
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    ++task->attempts;
    task->started = attempt.started;
    task->ended = attempt.ended;
    task->resources = std::move(attempt.resources);
    task->host = std::move(attempt.host);
    task->devices = std::move(attempt.devices);
    if (!attempt.ended) continue;
    task->exit_code = attempt.exit_code;
    task->cause = std::move(attempt.cause);
  }
  while (answers[2].next()) {
    std::string name;
    std::optional<double> value;
    BERTH_TRY(answers[2].read(number, name, value));
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    task->metrics.emplace_back(std::move(name), number_of(value));
  }
  return tasks;
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
      add(last, kAddSpec, record.id, run.spec_json);
      Lists tasks;
      for (std::size_t i = 0; i < run.tasks.size(); ++i) {
        tasks.add(static_cast<std::int64_t>(i + 1), run.tasks[i].label, run.tasks[i].params);
        if (tasks.rows() < kTasksAtOnce && i + 1 < run.tasks.size()) continue;
        add(last, kAddTasks, record.id, tasks);
        tasks = Lists();
      }
      add(last, kForgetWriters);
      return record;
    });
  }

  Result<RunRecord> take_over(RunId run, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    std::string tokens;  // as an array
    for (const Token token : alive)
      tokens += fmt::format("{}{}", tokens.empty() ? "" : ",", token.value);
    tokens = fmt::format("{{{}}}", tokens);
    Statements first;
    add(first, kLockRun, run);
    add(first, kEndLostAttempts, run, now, tokens);
    add(first, kWakeTasks, run, tokens);
    add(first, kNextEpoch, run, runner_pid, runner_started_at, host_);
    add(first, kRunById, run);
    auto taken = session_->write(first, [&](auto& rows, auto&) -> Result<RunRecord> {
      if (!rows.back().next()) return no_run(run);
      return read_whole_run(rows.back());
    });
    if (taken) epochs_[run] = taken->epoch;
    return taken;
  }

  Result<Applied> apply(RunId run, std::span<const Change> changes) override {
    PostgresBatch batch(run, changes);
    Statements first;
    batch.ask(first);
    const auto epoch = epochs_.find(run);
    return session_->write(first, [&](auto& rows, auto& last) {
      return batch.apply(rows, epoch == epochs_.end() ? std::nullopt : std::optional(epoch->second),
                         last);
    });
  }

  Result<std::unique_ptr<Claim>> claim(RunId run) {
    BERTH_TRY(session_->lock(lock_of(run)));
    return std::make_unique<Driving>(session_, lock_of(run));
  }

  Status keep_claims() { return session_->keep_locks(); }
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
    if (!rows.next())
      return fail(ErrorKind::not_found, "no result with the digest {}", clip(digest));
    return read_result(rows);
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    BERTH_ASSIGN(auto rows, ask(kListResults, after));
    std::vector<ResultRecord> records;
    while (rows.next()) {
      BERTH_ASSIGN(records.emplace_back(), read_result(rows));
    }
    return records;
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
    std::vector<RunRecord> runs;
    while (rows.next()) {
      BERTH_ASSIGN(runs.emplace_back(), read_run(rows));
    }
    return runs;
  }

  Result<RunRecord> find_run(std::string_view name) override {
    BERTH_ASSIGN(auto rows, ask(kRunByName, std::string(name)));
    if (!rows.next()) return fail(ErrorKind::not_found, "no run is called '{}'", clip(name));
    return read_whole_run(rows);
  }

  Result<std::vector<TaskRecord>> tasks(RunId run) override {
    Statements reads;
    add(reads, kFindRun, run);
    ask_tasks(reads, run, kFirstTask, kLastTask);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    if (!answers[0].next()) return no_run(run);
    return read_tasks(std::span(answers).subspan(1), kFirstTask);
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
    BERTH_ASSIGN(auto tasks, read_tasks(answers, number));
    if (tasks.empty()) return no_run(run);  // removed in between
    return std::move(tasks.front());
  }

  Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) override {
    BERTH_ASSIGN(auto rows, ask_of(run, task, kListAttempts));
    std::vector<AttemptRecord> attempts;
    while (rows.next()) {
      AttemptRecord& one = attempts.emplace_back();
      one.number = static_cast<std::int64_t>(attempts.size());
      BERTH_TRY(rows.read(one.token, one.started, one.ended, one.exit_code, one.cause, one.detail,
                          one.resources, one.host, one.cpu_ms, one.peak_mem, one.log_begin,
                          one.log_end, one.devices));
    }
    return attempts;
  }

  Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task) override {
    BERTH_ASSIGN(auto rows, ask_of(run, task, kListMetrics));
    std::vector<MetricRecord> metrics;
    while (rows.next()) {
      MetricRecord& one = metrics.emplace_back();
      std::optional<double> value;
      BERTH_TRY(rows.read(one.token, one.name, value, one.at, one.sequence));
      one.value = number_of(value);
    }
    return metrics;
  }

  Result<std::vector<Usage>> usage(RunId run) override {
    Statements reads;
    add(reads, kFindRun, run);
    add(reads, kAddUpUsage, run);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    if (!answers[0].next()) return no_run(run);
    std::vector<Usage> usage;
    while (answers[1].next()) {
      std::int64_t held_ns = 0;
      BERTH_TRY(answers[1].read(usage.emplace_back().resources, held_ns));
      usage.back().held = Duration(held_ns);
    }
    return usage;
  }

 private:
  template <class... Values>
  Result<Rows> ask(const char* sql, const Values&... values) {
    Statements reads;
    add(reads, sql, values...);
    BERTH_ASSIGN(auto answers, session_->read(reads));
    return std::move(answers.front());
  }
  /// Of a task that has to be there.
  Result<Rows> ask_of(RunId run, TaskNumber task, const char* sql) {
    Statements reads;
    add(reads, kTaskByNumber, run, task);
    add(reads, sql, run, task);
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

Status keep_claims(Store& store) {
  auto* const shared = dynamic_cast<PostgresStore*>(&store);
  return shared == nullptr ? Status() : shared->keep_claims();
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
