#include <sqlite3.h>

#include <array>
#include <unordered_map>

#include "berth/base/text.h"
#include "berth/store/records.h"
#include "berth/store/sqlite_statements.h"
#include "berth/store/store.h"

namespace berth::store {
namespace {

/// One batch within its transaction. What changes of the run's row is gathered and written once.
class SqliteBatch {
 public:
  SqliteBatch(PreparedStatements& sql, RunId run) : sql_(sql), run_(run) {}

  Result<Applied> apply(std::span<const Change> changes) {
    if (!read_marks()) return no_run(run_);
    for (const Change& change : changes)
      BERTH_TRY(std::visit([this](const auto& one) { return add(one); }, change));
    for (const auto& [task, begun] : begun_) write(*begun);
    Query(sql_.mark_run, run_, last_token_, metrics_seen_, grown_[0], grown_[1], grown_[2],
          grown_[3], grown_[4], grown_[5], grown_[6])
        .run();
    return applied_;
  }

 private:
  Status add(const AttemptStarted& change) {
    if (change.token <= last_token_)
      return fail(ErrorKind::stale, "task {}: token {} is not above {}, the run's last",
                  change.task.value, change.token.value, last_token_.value);
    BERTH_ASSIGN(const TaskState from, state_to_start(change));
    begun_.emplace(change.task.value, &change);
    last_token_ = change.token;
    count(from, TaskState::running);
    return {};
  }

  void write(const AttemptStarted& begun) {
    Query(sql_.start_task, run_, begun.task, begun.token).run();
    Query(sql_.start_attempt, run_, begun.task, begun.token, begun.at, begun.resources, begun.host,
          begun.devices)
        .run();
  }

  /// waiting or stopped, once the attempt that still ran has been ended.
  Result<TaskState> state_to_start(const AttemptStarted& change) {
    BERTH_ASSIGN(const TaskMarks marks, find(change.task));
    if (final(marks.state))
      return fail(ErrorKind::stale, "task {} is {}: no attempt can start", change.task.value,
                  name(marks.state));
    if (marks.state != TaskState::running) return marks.state;
    AttemptEnded superseded;
    superseded.task = change.task;
    superseded.token = marks.token;
    superseded.at = change.at;
    superseded.next = TaskState::waiting;
    superseded.cause = "superseded";
    BERTH_TRY(add(superseded));
    return TaskState::waiting;
  }

  Status add(const AttemptEnded& change) {
    BERTH_TRY(validate(change));
    if (const auto found = begun_.find(change.task.value); found != begun_.end()) {
      const AttemptStarted& begun = *found->second;
      if (begun.token != change.token) {
        ++applied_.refused;
        return {};
      }
      Query(sql_.pass_task, run_, change.task, change.token, change.next).run();
      Query(sql_.whole_attempt, run_, change.task, change.token, begun.at, begun.resources,
            begun.host, begun.devices, change.at, change.exit_code, change.cause, change.detail,
            change.cpu_ms, change.peak_mem, change.log_begin, change.log_end)
          .run();
      begun_.erase(found);
      count(TaskState::running, change.next);
      return {};
    }
    if (Query(sql_.end_task, run_, change.task, change.token, change.next).run() == 0) {
      ++applied_.refused;
      return {};
    }
    Query(sql_.end_attempt, run_, change.task, change.token, change.at, change.exit_code,
          change.cause, change.detail, change.cpu_ms, change.peak_mem, change.log_begin,
          change.log_end)
        .run();
    count(TaskState::running, change.next);
    return {};
  }

  Status add(const AttemptPlaced& change) {
    if (const auto begun = begun_.extract(change.task.value)) write(*begun.mapped());
    Query(sql_.place_attempt, run_, change.task, change.token, change.devices, change.at).run();
    return {};
  }

  Status add(const MetricSeen& change) {
    if (const auto begun = begun_.extract(change.task.value)) write(*begun.mapped());
    const std::int64_t sequence = metrics_seen_ + 1;
    if (Query(sql_.add_metric, run_, change.task, change.token, sequence, change.name, change.value,
              change.at)
            .run() == 0)
      return {};
    Query(sql_.keep_last_metric, run_, change.task, change.name, change.value, sequence).run();
    metrics_seen_ = sequence;
    return {};
  }

  Status add(const TaskMoved& change) {
    BERTH_TRY(validate(change));
    BERTH_ASSIGN(const TaskMarks marks, find(change.task));
    if (final(marks.state) || marks.state == TaskState::running || marks.state == change.to)
      return {};
    Query(sql_.move_task, run_, change.task, change.to).run();
    count(marks.state, change.to);
    return {};
  }

  Status add(const TaskReopened& change) {
    BERTH_ASSIGN(const TaskMarks marks, find(change.task));
    if (!final(marks.state)) return {};
    Query(sql_.reopen_task, run_, change.task).run();
    count(marks.state, TaskState::waiting);
    return {};
  }

  Status add(const TasksAdded& change) {
    TaskNumber number;
    {
      Query query(sql_.last_number, run_);
      query.next();
      query.read(number);
    }
    BERTH_TRY(validate(change, number.value));
    for (const NewTask& task : change.tasks) {
      if (Query(sql_.task_by_label, run_, task.label).next())
        return fail(ErrorKind::exists, "the run has a task '{}' already", clip(task.label));
      ++number.value;
      Query(sql_.add_task, run_, number, task.label, task.params).run();
      ++grown_[static_cast<std::size_t>(TaskState::waiting)];
    }
    return {};
  }

  Status add(const TaskKeyed& change) {
    BERTH_TRY(find(change.task));
    Query(sql_.key_task, run_, change.task, change.digest, change.depends).run();
    return {};
  }

  Status add(const ResultKept& change) {
    Query(sql_.keep_result, change.digest, change.outputs, change.origin, change.at).run();
    return {};
  }

  Status add(const RunMoved& change) {
    Query(sql_.move_run, run_, change.to, change.error, change.at, change.result).run();
    return {};
  }

  Status add(const RunStepped& change) {
    Query(sql_.step_run, run_, change.to, change.alloc, change.tries, change.last_try).run();
    return {};
  }

  Status add(const RunSpecified& change) {
    Query(sql_.specify_run, run_, change.spec_json).run();
    return {};
  }

  struct TaskMarks {
    TaskState state{};
    Token token;
  };

  Result<TaskMarks> find(TaskNumber task) {
    TaskMarks marks;
    if (const auto begun = begun_.find(task.value); begun != begun_.end())
      return TaskMarks{TaskState::running, begun->second->token};
    Query query(sql_.task_marks, run_, task);
    if (!query.next()) return no_task(run_, task);
    query.read(marks.state, marks.token);
    return marks;
  }

  bool read_marks() {
    Query query(sql_.run_marks, run_);
    if (!query.next()) return false;
    query.read(last_token_, metrics_seen_);
    return true;
  }

  void count(TaskState from, TaskState to) {
    --grown_[static_cast<std::size_t>(from)];
    ++grown_[static_cast<std::size_t>(to)];
  }

  PreparedStatements& sql_;
  const RunId run_;
  // Started and not written yet, by task: most end in the same batch, and are written once.
  std::unordered_map<std::int64_t, const AttemptStarted*> begun_;
  Token last_token_;
  std::int64_t metrics_seen_ = 0;
  std::array<std::int64_t, kTaskStates> grown_{};  // by TaskState
  Applied applied_;
};

ResultRecord read_result(Query& query) {
  ResultRecord record;
  query.read(record.digest, record.outputs, record.origin, record.used, record.sequence);
  return record;
}

RunRecord read_whole_run(Query& query) {
  RunRecord run;
  read_run(query, run, run.spec_json);
  return run;
}

/// The tasks numbered first..last: three scans in the order of their keys, laid side by side.
Result<std::vector<TaskRecord>> read_tasks(PreparedStatements& sql, RunId run, TaskNumber first,
                                           TaskNumber last) {
  std::vector<TaskRecord> tasks;
  for (Query query(sql.list_tasks, run, first, last); query.next();) {
    TaskRecord& task = tasks.emplace_back();
    query.read(task.number, task.label, task.state, task.token, task.params, task.forgiven,
               task.digest, task.depends);
  }
  // Numbers have no gaps, so that a number is a place.
  const auto at = [&](TaskNumber number) -> TaskRecord& {
    const auto place = static_cast<std::size_t>(number.value - first.value);
    if (place >= tasks.size()) throw SQLite::Exception("a row without its task", SQLITE_CORRUPT);
    return tasks[place];
  };
  TaskNumber number;
  for (Query query(sql.fold_attempts, run, first, last); query.next();) {
    AttemptRecord attempt;
    query.read(number, attempt.started, attempt.ended, attempt.exit_code, attempt.cause,
               attempt.resources, attempt.host, attempt.devices);
    TaskRecord& task = at(number);
    ++task.attempts;
    task.started = attempt.started;
    task.ended = attempt.ended;
    task.resources = std::move(attempt.resources);
    task.host = std::move(attempt.host);
    task.devices = std::move(attempt.devices);
    if (!attempt.ended) continue;
    task.exit_code = attempt.exit_code;
    task.cause = std::move(attempt.cause);
  }
  for (Query query(sql.last_metrics, run, first, last); query.next();) {
    std::string name;
    double value = 0;
    query.read(number, name, value);
    at(number).metrics.emplace_back(std::move(name), value);
  }
  return tasks;
}

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string file, std::unique_ptr<SQLite::Database> db)
      : file_(std::move(file)), db_(std::move(db)), sql_(*db_) {}

  Result<RunRecord> submit(const NewRun& run) override {
    BERTH_TRY(validate(run));
    return writing([&] { return add(run); });
  }

  Result<RunRecord> take_over(RunId run, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    std::string tokens;  // as a JSON list
    for (const Token token : alive)
      tokens += fmt::format("{}{}", tokens.empty() ? "" : ",", token.value);
    tokens = fmt::format("[{}]", tokens);
    return writing([&]() -> Result<RunRecord> {
      Query(sql_.end_lost_attempts, run, now, tokens).run();
      Query(sql_.wake_tasks, run, tokens).run();
      if (Query(sql_.next_epoch, run, runner_pid, runner_started_at).run() == 0) return no_run(run);
      return find(run);
    });
  }

  Result<Applied> apply(RunId run, std::span<const Change> changes) override {
    return writing([&] { return SqliteBatch(sql_, run).apply(changes); });
  }

  Status remove(RunId run) override {
    return writing([&]() -> Status {
      if (Query(sql_.remove_run, run).run() == 0) return no_run(run);
      return {};
    });
  }

  Result<ResultRecord> result(const std::string& digest) override {
    return reading([&]() -> Result<ResultRecord> {
      Query query(sql_.result_by_digest, digest);
      if (!query.next())
        return fail(ErrorKind::not_found, "no result with the digest {}", clip(digest));
      return read_result(query);
    });
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    return reading([&]() -> Result<std::vector<ResultRecord>> {
      std::vector<ResultRecord> records;
      for (Query query(sql_.list_results, after); query.next();)
        records.push_back(read_result(query));
      return records;
    });
  }

  Result<std::int64_t> forget_results(Wall unused_since) override {
    return writing(
        [&]() -> Result<std::int64_t> { return Query(sql_.forget_results, unused_since).run(); });
  }

  Result<std::vector<RunRecord>> runs() override {
    return reading([&]() -> Result<std::vector<RunRecord>> {
      std::vector<RunRecord> runs;
      for (Query query(sql_.list_runs); query.next();) read_run(query, runs.emplace_back());
      return runs;
    });
  }

  Result<RunRecord> find_run(std::string_view name) override {
    return reading([&]() -> Result<RunRecord> {
      Query query(sql_.run_by_name, std::string(name));
      if (!query.next()) return fail(ErrorKind::not_found, "no run is called '{}'", clip(name));
      return read_whole_run(query);
    });
  }

  Result<std::vector<TaskRecord>> tasks(RunId run) override {
    return reading([&]() -> Result<std::vector<TaskRecord>> {
      if (!Query(sql_.run_marks, run).next()) return no_run(run);
      return read_tasks(sql_, run, kFirstTask, kLastTask);
    });
  }

  Result<TaskRecord> find_task(RunId run, std::string_view label) override {
    return reading([&]() -> Result<TaskRecord> {
      TaskNumber number;
      {
        Query query(sql_.task_by_label, run, std::string(label));
        if (!query.next())
          return fail(ErrorKind::not_found, "run {} has no task '{}'", run.value, clip(label));
        query.read(number);
      }
      BERTH_ASSIGN(auto tasks, read_tasks(sql_, run, number, number));
      return std::move(tasks.front());
    });
  }

  Result<std::vector<AttemptRecord>> attempts(RunId run, TaskNumber task) override {
    return reading([&]() -> Result<std::vector<AttemptRecord>> {
      if (!Query(sql_.task_marks, run, task).next()) return no_task(run, task);
      std::vector<AttemptRecord> attempts;
      for (Query query(sql_.list_attempts, run, task); query.next();) {
        AttemptRecord& one = attempts.emplace_back();
        one.number = static_cast<std::int64_t>(attempts.size());
        query.read(one.token, one.started, one.ended, one.exit_code, one.cause, one.detail,
                   one.resources, one.host, one.cpu_ms, one.peak_mem, one.log_begin, one.log_end,
                   one.devices);
      }
      return attempts;
    });
  }

  Result<std::vector<MetricRecord>> metrics(RunId run, TaskNumber task) override {
    return reading([&]() -> Result<std::vector<MetricRecord>> {
      if (!Query(sql_.task_marks, run, task).next()) return no_task(run, task);
      std::vector<MetricRecord> metrics;
      for (Query query(sql_.list_metrics, run, task); query.next();) {
        MetricRecord& one = metrics.emplace_back();
        query.read(one.token, one.name, one.value, one.at, one.sequence);
      }
      return metrics;
    });
  }

  Result<std::vector<Usage>> usage(RunId run) override {
    return reading([&]() -> Result<std::vector<Usage>> {
      if (!Query(sql_.run_marks, run).next()) return no_run(run);
      std::vector<Usage> usage;
      std::int64_t held_ns = 0;
      for (Query query(sql_.add_up_usage, run); query.next();) {
        query.read(usage.emplace_back().resources, held_ns);
        usage.back().held = Duration(held_ns);
      }
      return usage;
    });
  }

 private:
  /// Runs `body` in a transaction; commits when it succeeds. Here exceptions end.
  template <class Body>
  auto within(SQLite::Statement& begin, Body body) -> decltype(body()) {
    try {
      Transaction transaction(sql_, begin);
      auto result = body();
      if (result) transaction.commit();
      return result;
    } catch (const SQLite::Exception& error) {
      return std::unexpected(explain(file_, error));
    }
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

  Result<RunRecord> add(const NewRun& run) {
    std::int64_t number = 0;
    {
      Query query(sql_.next_number, run.name);
      query.next();
      query.read(number);
    }
    RunId id;
    {
      Query query(sql_.add_run, fmt::format("{}-{}", run.name, number), run.kind, run.directory,
                  run.priority, run.created, static_cast<std::int64_t>(run.tasks.size()));
      query.next();
      query.read(id);
    }
    Query(sql_.add_spec, id, run.spec_json).run();
    TaskNumber task = kFirstTask;
    for (const NewTask& one : run.tasks) {
      Query(sql_.add_task, id, task, one.label, one.params).run();
      ++task.value;
    }
    return find(id);
  }

  Result<RunRecord> find(RunId id) {
    Query query(sql_.run_by_id, id);
    if (!query.next()) return no_run(id);
    return read_whole_run(query);
  }

  std::string file_;
  std::unique_ptr<SQLite::Database> db_;
  PreparedStatements sql_;
};

}  // namespace

Result<std::unique_ptr<Store>> sqlite_store(const std::string& file) {
  BERTH_ASSIGN(auto db, open_database(file));
  try {
    return std::make_unique<SqliteStore>(file, std::move(db));
  } catch (const SQLite::Exception& error) {
    return std::unexpected(explain(file, error));
  }
}

}  // namespace berth::store
