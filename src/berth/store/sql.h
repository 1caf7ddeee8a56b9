// SQLite and PostgreSQL share this SQL and the order of its columns: each statement stands here
// once, and each kind of row is read and written in one place. Statements are written as PostgreSQL
// has them; SQLite takes "?1" for "$1".
//
// An Answer is what a statement returned. Its next() leads to the next row, and its read() gives
// the columns in order, as Query (SQLite) and Rows (PostgreSQL) have them. Errors are those of
// read(); others are named.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/text.h"
#include "berth/store/records.h"
#include "berth/store/transition.h"

namespace berth::store {

/// read_run() reads these columns.
#define BERTH_RUN_COLUMNS                                                                    \
  "run.id, name, kind, directory, priority, state, created_ns, started_ns, ended_ns, error," \
  " epoch, runner_pid, runner_started_at, runner_host, result, phase, alloc, tries,"         \
  " last_try_ns, waiting, running, done, cached, skipped, failed, stopped"
inline constexpr const char* kListRuns = "SELECT " BERTH_RUN_COLUMNS " FROM run ORDER BY run.id";
inline constexpr const char* kRunByName =
    "SELECT " BERTH_RUN_COLUMNS
    ", spec_json FROM run JOIN run_spec ON run_id = run.id WHERE name = $1";
#define BERTH_RUN_ROW \
  "SELECT " BERTH_RUN_COLUMNS ", last_token, metrics_seen FROM run WHERE run.id = $1"
inline constexpr const char* kSpecification = "SELECT spec_json FROM run_spec WHERE run_id = $1";
inline constexpr const char* kFindRun = "SELECT id FROM run WHERE id = $1";
inline constexpr const char* kUnfinishedTasks =
    "SELECT number, state, token, forgiven FROM task WHERE run_id = $1"
    " AND state IN ('running', 'stopped') ORDER BY number";
inline constexpr const char* kListTasks =
    "SELECT number, label, state, token, params_json, forgiven, digest, depends FROM task"
    " WHERE run_id = $1 AND number BETWEEN $2 AND $3 ORDER BY number";
inline constexpr const char* kFoldAttempts =
    "SELECT task, started_ns, ended_ns, cause, exit_code, signal, resources, host,"
    " devices, lease_ns FROM attempt"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, token";
inline constexpr const char* kLastMetrics =
    "SELECT task, name, value FROM metric_last"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, first_sequence";
inline constexpr const char* kTaskByLabel =
    "SELECT number FROM task WHERE run_id = $1 AND label = $2";
inline constexpr const char* kTaskByNumber =
    "SELECT number FROM task WHERE run_id = $1 AND number = $2";
inline constexpr const char* kListAttempts =
    "SELECT token, started_ns, ended_ns, cause, exit_code, signal, detail, resources, host,"
    " cpu_ms, peak_mem, log_begin, log_end, devices, lease_ns FROM attempt WHERE run_id = $1 AND "
    "task = $2"
    " ORDER BY token";
inline constexpr const char* kAddUpUsage =
    "SELECT resources, CAST(sum(ended_ns - started_ns) AS bigint) FROM attempt"
    " WHERE run_id = $1 AND ended_ns IS NOT NULL GROUP BY resources";
inline constexpr const char* kListMetrics =
    "SELECT token, name, value, at_ns, sequence FROM metric WHERE run_id = $1 AND task = $2"
    " AND sequence > $3 ORDER BY sequence";
inline constexpr const char* kResultByDigest =
    "SELECT digest, outputs, origin, used_ns, sequence FROM result WHERE digest = $1";
inline constexpr const char* kListResults =
    "SELECT digest, outputs, origin, used_ns, sequence FROM result WHERE sequence > $1"
    " ORDER BY sequence";
inline constexpr const char* kForgetResults =
    "DELETE FROM result WHERE used_ns < $1 AND digest NOT IN"
    " (SELECT task.digest FROM task JOIN run ON run.id = task.run_id WHERE run.state <> 'done')";
inline constexpr const char* kAddSpecification =
    "INSERT INTO run_spec (run_id, spec_json) VALUES ($1, $2)";
inline constexpr const char* kChangeSpecification =
    "UPDATE run_spec SET spec_json = $2 WHERE run_id = $1";
inline constexpr const char* kChangeRun =
    "UPDATE run SET state = $2, started_ns = $3, ended_ns = $4, error = $5, epoch = $6,"
    " runner_pid = $7, runner_started_at = $8, runner_host = $9, result = $10, phase = $11,"
    " alloc = $12, tries = $13, last_try_ns = $14, waiting = $15, running = $16, done = $17,"
    " cached = $18, skipped = $19, failed = $20, stopped = $21, last_token = $22,"
    " metrics_seen = $23 WHERE id = $1";

/// The statements that write rows of tasks, attempts and metrics. SQLite executes one for each row,
/// PostgreSQL one for all rows of a kind.
struct RowStatements {
  const char *add_task, *change_task, *change_keyed_task, *key_task, *set_params, *add_attempt,
      *keep_attempt, *place_attempt, *end_attempt, *add_metric, *keep_last_metric;
};

/// Calls `write(statement, values…)` for each row of a task, an attempt or a metric. The values are
/// the statement's parameters behind the run, which is its first.
template <class Write>
void write_rows(const RowStatements& to, const RowWrites& rows, const Write& write) {
  for (const auto& added : rows.added_tasks)
    write(to.add_task, added.number, added.task->label, added.task->params);
  for (const auto& [number, task, key] : rows.tasks)
    if (key == nullptr) write(to.change_task, number, task.state, task.token, task.forgiven);
  for (const auto& [number, task, key] : rows.tasks)
    if (key != nullptr)
      write(to.change_keyed_task, number, task.state, task.token, task.forgiven, key->digest,
            key->depends);
  for (const TaskKeyed* key : rows.keys) write(to.key_task, key->task, key->digest, key->depends);
  for (const ParamsSet* one : rows.params) write(to.set_params, one->task, one->params);
  for (const auto& [task, one] : rows.added_attempts)
    write(to.add_attempt, task, one.token, one.started, one.resources, one.host, one.devices,
          one.ended, one.cause, one.exit_code, one.signal, one.detail, one.cpu_ms, one.peak_mem,
          one.log_begin, one.log_end, one.lease);
  for (const AttemptKept& one : rows.kept) write(to.keep_attempt, one.task, one.token, one.lease);
  for (const AttemptPlaced& one : rows.placed)
    write(to.place_attempt, one.task, one.token, one.devices, one.at);
  for (const AttemptEnded& one : rows.ended)
    write(to.end_attempt, one.task, one.token, one.at, one.cause, one.exit_code, one.signal,
          one.detail, one.cpu_ms, one.peak_mem, one.log_begin, one.log_end);
  for (const auto& [metric, sequence] : rows.added_metrics)
    write(to.add_metric, metric->task, metric->token, sequence, metric->name, metric->value,
          metric->at);
  for (const auto& last : rows.last_metrics)
    write(to.keep_last_metric, last.task, *last.name, last.value, last.first_sequence);
}
/// Calls `write` as above for the run and its specification.
template <class Write>
void write_run(const RowWrites& rows, const Write& write) {
  const RunRecord& run = rows.run.record;
  const Counts& n = run.counts;
  write(kChangeRun, run.state, run.started, run.ended, run.error, run.epoch, run.runner_pid,
        run.runner_started_at, run.runner_host, run.result, run.phase, run.alloc, run.tries,
        run.last_try, n.waiting, n.running, n.done, n.cached, n.skipped, n.failed, n.stopped,
        rows.run.last_token, rows.run.metrics_seen);
  if (rows.spec_json != nullptr) write(kChangeSpecification, *rows.spec_json);
}

/// Reads the columns of a run; `more` are those that the statement has behind them.
template <class Answer, class... More>
Result<RunRecord> read_run(Answer&& answer, More&... more) {
  RunRecord run;
  Counts& n = run.counts;
  BERTH_TRY(answer.read(run.id, run.name, run.kind, run.directory, run.priority, run.state,
                        run.created, run.started, run.ended, run.error, run.epoch, run.runner_pid,
                        run.runner_started_at, run.runner_host, run.result, run.phase, run.alloc,
                        run.tries, run.last_try, n.waiting, n.running, n.done, n.cached, n.skipped,
                        n.failed, n.stopped, more...));
  return run;
}

/// Reads the answer to kListRuns.
template <class Answer>
Result<std::vector<RunRecord>> read_runs(Answer&& answer) {
  std::vector<RunRecord> runs;
  while (answer.next()) {
    BERTH_ASSIGN(runs.emplace_back(), read_run(answer));
  }
  return runs;
}

/// Reads the answer to kRunByName. not_found: there is no such run.
template <class Answer>
Result<RunRecord> read_named_run(Answer&& answer, std::string_view name) {
  if (!answer.next()) return fail(ErrorKind::not_found, "no run is called '{}'", clip(name));
  std::string specification;
  BERTH_ASSIGN(RunRecord run, read_run(answer, specification));
  run.spec_json = std::move(specification);
  return run;
}

/// Reads the answer to BERTH_RUN_ROW. not_found: there is no such run.
template <class Answer>
Result<RunRow> read_run_row(Answer&& answer, RunId id) {
  if (!answer.next()) return no_run(id);
  RunRow row;
  BERTH_ASSIGN(row.record, read_run(answer, row.last_token, row.metrics_seen));
  return row;
}

/// Appends the answer to kUnfinishedTasks, or to a statement with the same columns.
template <class Answer>
Status read_task_rows(Answer&& answer, CurrentRows& rows) {
  while (answer.next()) {
    auto& [number, task] = rows.tasks.emplace_back();
    BERTH_TRY(answer.read(number, task.state, task.token, task.forgiven));
  }
  return {};
}

/// The numbers in their order, those that follow each other as one range: a statement each.
struct TaskRange {
  TaskNumber first, last;
  std::size_t size() const { return static_cast<std::size_t>(last.value - first.value + 1); }
};
inline std::vector<TaskRange> ranges_of(std::span<const TaskNumber> numbers) {
  std::vector<TaskRange> ranges;
  for (const TaskNumber number : numbers) {
    if (!ranges.empty() && number.value == ranges.back().last.value + 1)
      ranges.back().last = number;
    else
      ranges.push_back({number, number});
  }
  return ranges;
}

/// Reads the answers to kListTasks, kFoldAttempts and kLastMetrics for the numbers from `first` on.
/// corrupt: an attempt or a metric lacks its task.
template <class Answer>
Result<std::vector<TaskRecord>> read_tasks(Answer&& listed, Answer&& attempts, Answer&& metrics,
                                           TaskNumber first) {
  std::vector<TaskRecord> tasks;
  while (listed.next()) {
    TaskRecord& task = tasks.emplace_back();
    BERTH_TRY(listed.read(task.number, task.label, task.state, task.token, task.params,
                          task.forgiven, task.digest, task.depends));
  }
  // Numbers have no gaps, so that a number is a place.
  const auto at = [&](TaskNumber number) -> Result<TaskRecord*> {
    const auto place = static_cast<std::size_t>(number.value - first.value);
    if (place < tasks.size()) return &tasks[place];
    return fail(ErrorKind::corrupt,
                "the store has an attempt or a metric of task {}, and no such"
                " task: restore it from a copy",
                number.value);
  };
  TaskNumber number;
  std::string cause;
  while (attempts.next()) {
    AttemptRecord one;
    BERTH_TRY(attempts.read(number, one.started, one.ended, cause, one.exit_code, one.signal,
                            one.resources, one.host, one.devices, one.lease));
    read_cause(cause, one);
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    add_attempt(*task, std::move(one));
  }
  while (metrics.next()) {
    std::string name;
    double value = 0;
    BERTH_TRY(metrics.read(number, name, value));
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    set_metric(task->metrics, name, value);
  }
  return tasks;
}

/// Reads the answer to kListAttempts.
template <class Answer>
Result<std::vector<AttemptRecord>> read_attempts(Answer&& answer) {
  std::vector<AttemptRecord> attempts;
  std::string cause;
  while (answer.next()) {
    AttemptRecord& one = attempts.emplace_back();
    one.number = static_cast<std::int64_t>(attempts.size());
    BERTH_TRY(answer.read(one.token, one.started, one.ended, cause, one.exit_code, one.signal,
                          one.detail, one.resources, one.host, one.cpu_ms, one.peak_mem,
                          one.log_begin, one.log_end, one.devices, one.lease));
    read_cause(cause, one);
  }
  return attempts;
}

/// Reads the answer to kListMetrics.
template <class Answer>
Result<std::vector<MetricRecord>> read_metrics(Answer&& answer) {
  std::vector<MetricRecord> metrics;
  while (answer.next()) {
    MetricRecord& one = metrics.emplace_back();
    BERTH_TRY(answer.read(one.token, one.name, one.value, one.at, one.sequence));
    if (one.value == kMissing) metrics.pop_back();
  }
  return metrics;
}

/// Reads the answer to kAddUpUsage.
template <class Answer>
Result<std::vector<Usage>> read_usage(Answer&& answer) {
  std::vector<Usage> usage;
  while (answer.next()) {
    std::int64_t held_ns = 0;
    BERTH_TRY(answer.read(usage.emplace_back().resources, held_ns));
    usage.back().held = Duration(held_ns);
  }
  std::ranges::sort(usage, {}, &Usage::resources);  // The database may sort by another rule.
  return usage;
}

/// Reads the answer to kListResults.
template <class Answer>
Result<std::vector<ResultRecord>> read_results(Answer&& answer) {
  std::vector<ResultRecord> results;
  while (answer.next()) {
    ResultRecord& one = results.emplace_back();
    BERTH_TRY(answer.read(one.digest, one.outputs, one.origin, one.used, one.sequence));
  }
  return results;
}

/// Reads the answer to kResultByDigest. not_found: there is no such result.
template <class Answer>
Result<ResultRecord> read_result(Answer&& answer, const std::string& digest) {
  BERTH_ASSIGN(auto results, read_results(answer));
  if (!results.empty()) return std::move(results.front());
  return fail(ErrorKind::not_found, "no result with the digest {}", clip(digest));
}

}  // namespace berth::store
