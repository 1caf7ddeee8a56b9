// SQLite and PostgreSQL share this SQL and the order of its columns: each statement stands here
// once, and each kind of row is read and written in one place. Statements are written as PostgreSQL
// has them; SQLite takes "?1" for "$1". Columns and parameters in a comment ("/*, row_sum*/") are
// the sums of rows (row_sum.h), which the SQLite store alone has.
//
// An Answer is what a statement returned. Its next() leads to the next row, and its read() gives
// the columns in order, as Query (SQLite) and Rows (PostgreSQL) have them. Its check() compares the
// next column, a sum, with the values that it covers; corrupt: they differ. Errors are those of
// read() and check(); others are named.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/text.h"
#include "berth/store/records.h"
#include "berth/store/row_sum.h"
#include "berth/store/transition.h"

namespace berth::store {

/// read_run() reads these columns.
#define BERTH_RUN_COLUMNS                                                                    \
  "run.id, name, kind, directory, priority, state, created_ns, started_ns, ended_ns, error," \
  " epoch, runner_pid, runner_started_at, runner_host, result, phase, alloc, tries,"         \
  " last_try_ns, waiting, running, done, cached, skipped, failed, stopped"
#define BERTH_RUN_SUMS "/*, name_sum, result_sum*/"
inline constexpr const char* kListRuns =
    "SELECT " BERTH_RUN_COLUMNS BERTH_RUN_SUMS " FROM run ORDER BY run.id";
inline constexpr const char* kRunByName =
    "SELECT " BERTH_RUN_COLUMNS ", spec_json" BERTH_RUN_SUMS
    "/*, row_sum*/ FROM run JOIN run_spec ON run_id = run.id WHERE name = $1";
#define BERTH_RUN_ROW                                                     \
  "SELECT " BERTH_RUN_COLUMNS ", last_token, metrics_seen" BERTH_RUN_SUMS \
  " FROM run WHERE run.id = $1"
inline constexpr const char* kSpecification =
    "SELECT spec_json/*, row_sum*/ FROM run_spec WHERE run_id = $1";
inline constexpr const char* kFindRun = "SELECT id FROM run WHERE id = $1";
inline constexpr const char* kUnfinishedTasks =
    "SELECT number, state, token, forgiven FROM task WHERE run_id = $1"
    " AND state IN ('running', 'stopped') ORDER BY number";
inline constexpr const char* kListTasks =
    "SELECT number, label, state, token, params_json, forgiven, digest, depends"
    "/*, label_sum, params_sum, key_sum*/ FROM task WHERE run_id = $1 AND number BETWEEN $2 AND $3 "
    "ORDER BY number";
inline constexpr const char* kFoldAttempts =
    "SELECT task, token, started_ns, ended_ns, cause, exit_code, signal, detail,"
    " resources, host, devices, lease_ns/*, begin_sum, end_sum*/ FROM attempt"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, token";
inline constexpr const char* kLastMetrics =
    "SELECT task, name, value/*, row_sum*/ FROM metric_last"
    " WHERE run_id = $1 AND task BETWEEN $2 AND $3 ORDER BY task, first_sequence";
inline constexpr const char* kTaskByLabel =
    "SELECT number FROM task WHERE run_id = $1 AND label = $2";
inline constexpr const char* kTaskByNumber =
    "SELECT number FROM task WHERE run_id = $1 AND number = $2";
inline constexpr const char* kListAttempts =
    "SELECT token, started_ns, ended_ns, cause, exit_code, signal, detail, resources, host,"
    " cpu_ms, peak_mem, log_begin, log_end, devices, lease_ns"
    "/*, begin_sum, end_sum*/ FROM attempt WHERE run_id = $1 AND task = $2"
    " ORDER BY token";
inline constexpr const char* kAddUpUsage =
    "SELECT resources, CAST(sum(ended_ns - started_ns) AS bigint) FROM attempt"
    " WHERE run_id = $1 AND ended_ns IS NOT NULL GROUP BY resources";
inline constexpr const char* kListMetrics =
    "SELECT token, name, value, at_ns, sequence/*, row_sum*/ FROM metric WHERE run_id = $1 AND "
    "task = $2"
    " AND sequence > $3 ORDER BY sequence";
inline constexpr const char* kResultByDigest =
    "SELECT digest, outputs, origin, used_ns, sequence/*, row_sum*/ FROM result WHERE digest = $1";
inline constexpr const char* kListResults =
    "SELECT digest, outputs, origin, used_ns, sequence/*, row_sum*/ FROM result"
    " WHERE sequence > $1 ORDER BY sequence";
inline constexpr const char* kForgetResults =
    "DELETE FROM result WHERE used_ns < $1 AND digest NOT IN"
    " (SELECT task.digest FROM task JOIN run ON run.id = task.run_id WHERE run.state <> 'done')";
inline constexpr const char* kAddSpecification =
    "INSERT INTO run_spec (run_id, spec_json/*, row_sum*/) VALUES ($1, $2/*, $3*/)";
inline constexpr const char* kChangeSpecification =
    "UPDATE run_spec SET spec_json = $2/*, row_sum = $3*/ WHERE run_id = $1";
inline constexpr const char* kChangeRun =
    "UPDATE run SET state = $2, started_ns = $3, ended_ns = $4, error = $5, epoch = $6,"
    " runner_pid = $7, runner_started_at = $8, runner_host = $9, result = $10, phase = $11,"
    " alloc = $12, tries = $13, last_try_ns = $14, waiting = $15, running = $16, done = $17,"
    " cached = $18, skipped = $19, failed = $20, stopped = $21, last_token = $22,"
    " metrics_seen = $23/*, result_sum = $24*/ WHERE id = $1";

/// The statements that write rows of tasks, attempts and metrics. SQLite executes one for each row,
/// PostgreSQL one for all rows of a kind.
struct RowStatements {
  const char *add_task, *change_task, *change_keyed_task, *key_task, *set_params, *add_attempt,
      *keep_attempt, *place_attempt, *end_attempt, *add_metric, *keep_last_metric;
};

// The sums of the parts of rows that change apart from each other.

inline RowSum sum_of_label(TaskNumber task, std::string_view label) {
  return sum_of(task, label);
}
inline RowSum sum_of_params(TaskNumber task, const Values& params) {
  return sum_of(task, params);
}
inline RowSum sum_of_key(TaskNumber task, std::string_view digest, std::string_view depends) {
  return sum_of(task, digest, depends);
}
inline RowSum sum_of_begin(TaskNumber task, Token token, std::string_view resources,
                           std::string_view host) {
  return sum_of(task, token, resources, host);
}
/// `cause` is the text of the column. An attempt without an end has no such sum.
inline RowSum sum_of_end(TaskNumber task, Token token, const std::optional<Wall>& ended,
                         std::string_view cause, const std::optional<int>& exit_code, int signal,
                         std::string_view detail) {
  return ended ? sum_of(task, token, ended, cause, exit_code, signal, detail) : RowSum{};
}
inline RowSum sum_of_metric(TaskNumber task, std::int64_t sequence, Token token,
                            std::string_view name, double value, Wall at) {
  return sum_of(task, sequence, token, name, value, at);
}
inline RowSum sum_of_last(TaskNumber task, std::string_view name, double value) {
  return sum_of(task, name, value);
}

/// Calls `write(statement, values…)` for each row of a task, an attempt or a metric. The values are
/// the statement's parameters behind the run, which is its first; PostgreSQL ignores the sums.
template <class Write>
void write_rows(const RowStatements& to, const RowWrites& rows, const Write& write) {
  for (const auto& added : rows.added_tasks)
    write(to.add_task, added.number, added.task->label, added.task->params,
          sum_of_label(added.number, added.task->label),
          sum_of_params(added.number, added.task->params));
  for (const auto& [number, task, key] : rows.tasks)
    if (key == nullptr) write(to.change_task, number, task.state, task.token, task.forgiven);
  for (const auto& [number, task, key] : rows.tasks)
    if (key != nullptr)
      write(to.change_keyed_task, number, task.state, task.token, task.forgiven, key->digest,
            key->depends, sum_of_key(number, key->digest, key->depends));
  for (const TaskKeyed* key : rows.keys)
    write(to.key_task, key->task, key->digest, key->depends,
          sum_of_key(key->task, key->digest, key->depends));
  for (const ParamsSet* one : rows.params)
    write(to.set_params, one->task, one->params, sum_of_params(one->task, one->params));
  for (const auto& [task, one] : rows.added_attempts)
    write(to.add_attempt, task, one.token, one.started, one.resources, one.host, one.devices,
          one.ended, one.cause, one.exit_code, one.signal, one.detail, one.cpu_ms, one.peak_mem,
          one.log_begin, one.log_end, one.lease,
          sum_of_begin(task, one.token, one.resources, one.host),
          sum_of_end(task, one.token, one.ended, one.cause ? name(*one.cause) : "", one.exit_code,
                     one.signal, one.detail));
  for (const AttemptKept& one : rows.kept) write(to.keep_attempt, one.task, one.token, one.lease);
  for (const AttemptPlaced& one : rows.placed)
    write(to.place_attempt, one.task, one.token, one.devices, one.at);
  for (const AttemptEnded& one : rows.ended)
    write(to.end_attempt, one.task, one.token, one.at, one.cause, one.exit_code, one.signal,
          one.detail, one.cpu_ms, one.peak_mem, one.log_begin, one.log_end,
          sum_of_end(one.task, one.token, one.at, name(one.cause), one.exit_code, one.signal,
                     one.detail));
  for (const auto& [metric, sequence] : rows.added_metrics)
    write(to.add_metric, metric->task, metric->token, sequence, metric->name, metric->value,
          metric->at,
          sum_of_metric(metric->task, sequence, metric->token, metric->name, metric->value,
                        metric->at));
  for (const auto& last : rows.last_metrics)
    write(to.keep_last_metric, last.task, *last.name, last.value, last.first_sequence,
          sum_of_last(last.task, *last.name, last.value));
}
/// Calls `write` as above for the run and its specification.
template <class Write>
void write_run(const RowWrites& rows, const Write& write) {
  const RunRecord& run = rows.run.record;
  const Counts& n = run.counts;
  write(kChangeRun, run.state, run.started, run.ended, run.error, run.epoch, run.runner_pid,
        run.runner_started_at, run.runner_host, run.result, run.phase, run.alloc, run.tries,
        run.last_try, n.waiting, n.running, n.done, n.cached, n.skipped, n.failed, n.stopped,
        rows.run.last_token, rows.run.metrics_seen, sum_of(run.id, run.error, run.result));
  if (rows.spec_json != nullptr)
    write(kChangeSpecification, *rows.spec_json, sum_of(run.id, *rows.spec_json));
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
  const std::int64_t lowest =
      std::min({run.epoch, n.waiting, n.running, n.done, n.cached, n.skipped, n.failed, n.stopped});
  if (lowest < 0)
    return fail(ErrorKind::corrupt,
                "the store is damaged: run {} has a count of {}; see berth doctor", run.id.value,
                lowest);
  BERTH_TRY(answer.check("the name of run", run.name, run.kind, run.directory));
  BERTH_TRY(answer.check("the result of run", run.id, run.error, run.result));
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
  BERTH_TRY(answer.check("the specification of run", run.id, specification));
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

/// corrupt: rows are missing, or not in their order, as after two pages of a file were exchanged.
inline std::unexpected<Error> rows_missing(std::string_view what, TaskNumber task) {
  return fail(ErrorKind::corrupt,
              "the store is damaged: {} task {} {} not what the other rows name; see berth doctor",
              what, task.value, what.ends_with("s of") ? "are" : "is");
}

/// Reads the answers to kListTasks, kFoldAttempts and kLastMetrics for the numbers from `first` on.
/// corrupt: a task is missing, an attempt or a metric lacks its task, or a task its attempts.
template <class Answer>
Result<std::vector<TaskRecord>> read_tasks(Answer&& listed, Answer&& attempts, Answer&& metrics,
                                           TaskNumber first) {
  std::vector<TaskRecord> tasks;
  while (listed.next()) {
    TaskRecord& task = tasks.emplace_back();
    BERTH_TRY(listed.read(task.number, task.label, task.state, task.token, task.params,
                          task.forgiven, task.digest, task.depends));
    BERTH_TRY(listed.check("the label of task", task.number, task.label));
    BERTH_TRY(listed.check("the parameters of task", task.number, task.params));
    BERTH_TRY(listed.check("the digest of task", task.number, task.digest, task.depends));
    const TaskNumber expected{first.value + std::ssize(tasks) - 1};
    if (task.number != expected) return rows_missing("the row of", expected);
  }
  // Numbers have no gaps, so that a number is a place.
  const auto at = [&](TaskNumber number) -> Result<TaskRecord*> {
    const auto place = static_cast<std::size_t>(number.value - first.value);
    if (place < tasks.size()) return &tasks[place];
    return rows_missing("the attempts or metrics of", number);
  };
  TaskNumber number;
  std::string cause, detail;
  while (attempts.next()) {
    AttemptRecord one;
    BERTH_TRY(attempts.read(number, one.token, one.started, one.ended, cause, one.exit_code,
                            one.signal, detail, one.resources, one.host, one.devices, one.lease));
    BERTH_TRY(attempts.check("an attempt of task", number, one.token, one.resources, one.host));
    BERTH_TRY(attempts.check("the end of an attempt of task", number, one.token, one.ended, cause,
                             one.exit_code, one.signal, detail));
    read_cause(cause, one);
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    add_attempt(*task, std::move(one));
  }
  while (metrics.next()) {
    std::string name;
    double value = 0;
    BERTH_TRY(metrics.read(number, name, value));
    BERTH_TRY(metrics.check("a metric of task", number, name, value));
    BERTH_ASSIGN(TaskRecord* const task, at(number));
    set_metric(task->metrics, name, value);
  }
  for (const TaskRecord& task : tasks)
    if (task.token.value != 0 && task.attempts == 0)
      return rows_missing("the attempts of", task.number);
  return tasks;
}

/// Reads the answer to kListAttempts.
template <class Answer>
Result<std::vector<AttemptRecord>> read_attempts(Answer&& answer, TaskNumber task) {
  std::vector<AttemptRecord> attempts;
  std::string cause;
  while (answer.next()) {
    AttemptRecord& one = attempts.emplace_back();
    one.number = static_cast<std::int64_t>(attempts.size());
    BERTH_TRY(answer.read(one.token, one.started, one.ended, cause, one.exit_code, one.signal,
                          one.detail, one.resources, one.host, one.cpu_ms, one.peak_mem,
                          one.log_begin, one.log_end, one.devices, one.lease));
    BERTH_TRY(answer.check("an attempt of task", task, one.token, one.resources, one.host));
    BERTH_TRY(answer.check("the end of an attempt of task", task, one.token, one.ended, cause,
                           one.exit_code, one.signal, one.detail));
    if (attempts.size() > 1 && attempts[attempts.size() - 2].token >= one.token)
      return rows_missing("the attempts of", task);
    read_cause(cause, one);
  }
  return attempts;
}

/// Reads the answer to kListMetrics.
template <class Answer>
Result<std::vector<MetricRecord>> read_metrics(Answer&& answer, TaskNumber task) {
  std::vector<MetricRecord> metrics;
  std::int64_t last = 0;
  while (answer.next()) {
    MetricRecord& one = metrics.emplace_back();
    BERTH_TRY(answer.read(one.token, one.name, one.value, one.at, one.sequence));
    BERTH_TRY(answer.check("a metric of task", task, one.sequence, one.token, one.name, one.value,
                           one.at));
    if (one.sequence <= last) return rows_missing("the metrics of", task);
    last = one.sequence;
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
    BERTH_TRY(answer.check("the cached result", one.digest, one.outputs, one.origin));
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
