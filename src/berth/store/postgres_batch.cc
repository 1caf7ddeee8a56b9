#include "berth/store/postgres_batch.h"

#include <set>

#include "berth/base/text.h"

namespace berth::store {
namespace {

constexpr const char* kLockRunMarks =
    "SELECT last_token, metrics_seen, epoch, (SELECT coalesce(max(number), 0) FROM task"
    " WHERE run_id = $1) FROM run WHERE id = $1 FOR UPDATE";
constexpr const char* kTaskMarks =
    "SELECT number, state, token, forgiven FROM task"
    " WHERE run_id = $1 AND number = ANY ($2::bigint[])";
constexpr const char* kLabels =
    "SELECT label FROM task WHERE run_id = $1 AND label = ANY ($2::text[])";

constexpr const char* kMarkRun =
    "UPDATE run SET last_token = $2, metrics_seen = $3, waiting = waiting + $4,"
    " running = running + $5, done = done + $6, cached = cached + $7,"
    " skipped = skipped + $8, failed = failed + $9, stopped = stopped + $10 WHERE id = $1";
constexpr const char* kMoveRun =
    "UPDATE run SET state = $2, error = $3, result = $5,"
    " started_ns = CASE WHEN $2 = 'running' THEN coalesce(started_ns, $4) ELSE started_ns END,"
    " ended_ns = CASE WHEN $2 IN ('waiting', 'running') THEN NULL ELSE $4::bigint END"
    " WHERE id = $1";
constexpr const char* kStepRun =
    "UPDATE run SET phase = $2, alloc = $3, tries = $4, last_try_ns = $5 WHERE id = $1";
constexpr const char* kSpecifyRun = "UPDATE run_spec SET spec_json = $2 WHERE run_id = $1";
constexpr const char* kMarkTasks =
    "UPDATE task SET state = new.state, token = new.token, forgiven = new.forgiven"
    " FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[])"
    " AS new (number, state, token, forgiven) WHERE run_id = $1 AND task.number = new.number";
constexpr const char* kKeyTasks =
    "UPDATE task SET digest = new.digest, depends = new.depends"
    " FROM unnest($2::bigint[], $3::text[], $4::text[]) AS new (number, digest, depends)"
    " WHERE run_id = $1 AND task.number = new.number";
constexpr const char* kStartAttempts =
    "INSERT INTO attempt (run_id, task, token, started_ns, resources, host, devices)"
    " SELECT $1::bigint, * FROM"
    " unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[])";
constexpr const char* kPlaceAttempts =
    "UPDATE attempt SET devices = new.devices, started_ns = coalesce(new.started_ns,"
    " attempt.started_ns) FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[])"
    " AS new (task, token, devices, started_ns)"
    " WHERE run_id = $1 AND attempt.task = new.task AND attempt.token = new.token";
constexpr const char* kEndAttempts =
    "UPDATE attempt SET ended_ns = new.ended_ns, exit_code = new.exit_code, cause = new.cause,"
    " detail = new.detail, cpu_ms = new.cpu_ms, peak_mem = new.peak_mem,"
    " log_begin = new.log_begin, log_end = new.log_end"
    " FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],"
    " $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])"
    " AS new (task, token, ended_ns, exit_code, cause, detail, cpu_ms, peak_mem, log_begin,"
    " log_end) WHERE run_id = $1 AND attempt.task = new.task AND attempt.token = new.token";
constexpr const char* kAddMetrics =
    "INSERT INTO metric (run_id, task, token, sequence, name, value, at_ns)"
    " SELECT $1::bigint, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[],"
    " $6::double precision[], $7::bigint[])";
constexpr const char* kKeepLastMetrics =
    "INSERT INTO metric_last (run_id, task, name, value, first_sequence)"
    " SELECT $1::bigint, * FROM"
    " unnest($2::bigint[], $3::text[], $4::double precision[], $5::bigint[])"
    " ON CONFLICT (run_id, task, name) DO UPDATE SET value = excluded.value";
/// The row of `store` stays locked until the commit: no sequence number is seen before a smaller
/// one.
constexpr const char* kKeepResults =
    "WITH before AS (UPDATE store SET results_kept = results_kept + $1"
    " RETURNING results_kept - $1 AS sequence)"
    " INSERT INTO result (sequence, digest, outputs, origin, used_ns)"
    " SELECT before.sequence + new.nth, digest, outputs, origin, used_ns FROM before,"
    " unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[])"
    " AS new (nth, digest, outputs, origin, used_ns)"
    " ON CONFLICT (digest) DO UPDATE SET sequence = excluded.sequence, outputs = excluded.outputs,"
    " origin = excluded.origin, used_ns = excluded.used_ns";

}  // namespace

void PostgresBatch::ask(Statements& reads) const {
  Lists numbers, labels;
  std::set<std::int64_t> seen;
  for (const Change& change : changes_)
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.task; }) {
            if (seen.insert(one.task.value).second) numbers.add(one.task);
          } else if constexpr (requires { one.tasks; }) {
            for (const NewTask& task : one.tasks) labels.add(task.label);
          }
        },
        change);
  store::add(reads, kLockRunMarks, run_);
  if (!numbers.empty()) store::add(reads, kTaskMarks, run_, numbers);
  if (!labels.empty()) store::add(reads, kLabels, run_, labels);
}

Status PostgresBatch::read(std::vector<Rows>& rows) {
  auto answer = rows.begin();
  if (!answer->next()) return fail(ErrorKind::not_found, "no run with the id {}", run_.value);
  BERTH_TRY(answer->read(last_token_, metrics_seen_, epoch_, tasks_));
  for (++answer; answer != rows.end(); ++answer)
    while (answer->next()) {
      if (answer->columns() == 1) {
        std::string label;
        BERTH_TRY(answer->read(label));
        labels_.insert(std::move(label));
        continue;
      }
      TaskNumber number;
      Task task;
      BERTH_TRY(answer->read(number, task.state, task.token, task.forgiven));
      named_.emplace(number.value, task);
    }
  return {};
}

Result<Applied> PostgresBatch::apply(std::vector<Rows>& rows, std::optional<std::int64_t> epoch,
                                     Statements& writes) {
  *this = PostgresBatch(run_, changes_);  // an earlier attempt of the transaction was undone
  BERTH_TRY(read(rows));
  if (epoch && *epoch != epoch_)
    return fail(ErrorKind::stale,
                "another runner has taken the run over (it is its runner number {}, this was {})",
                epoch_, *epoch);
  for (const Change& change : changes_)
    BERTH_TRY(std::visit([this](const auto& one) { return add(one); }, change));
  write(writes);
  return applied_;
}

Status PostgresBatch::add(const AttemptStarted& change) {
  if (change.token <= last_token_)
    return fail(ErrorKind::stale, "task {}: token {} is not above {}, the run's last",
                change.task.value, change.token.value, last_token_.value);
  BERTH_ASSIGN(Task* const task, find(change.task));
  if (final(task->state))
    return fail(ErrorKind::stale, "task {} is {}: no attempt can start", change.task.value,
                name(task->state));
  if (task->state == TaskState::running) {
    AttemptEnded superseded;
    superseded.task = change.task;
    superseded.token = task->token;
    superseded.at = change.at;
    superseded.next = TaskState::waiting;
    superseded.cause = "superseded";
    end(*task, superseded);
  }
  move(*task, TaskState::running);
  task->token = change.token;
  last_token_ = change.token;
  started_.add(change.task, change.token, change.at, change.resources, change.host, change.devices);
  return {};
}

Status PostgresBatch::add(const AttemptEnded& change) {
  BERTH_TRY(validate(change));
  if (Task* const task = current(change.task, change.token))
    end(*task, change);
  else
    ++applied_.refused;
  return {};
}

Status PostgresBatch::add(const AttemptPlaced& change) {
  if (current(change.task, change.token) != nullptr)
    placed_.add(change.task, change.token, change.devices, change.at);
  return {};
}

Status PostgresBatch::add(const MetricSeen& change) {
  if (current(change.task, change.token) == nullptr) return {};
  metrics_.add(change.task, change.token, ++metrics_seen_, change.name, change.value, change.at);
  const auto key = std::pair(change.task.value, change.name);
  last_metrics_.try_emplace(key, Metric{.first_sequence = metrics_seen_}).first->second.value =
      change.value;
  return {};
}

Status PostgresBatch::add(const TaskMoved& change) {
  BERTH_TRY(validate(change));
  BERTH_ASSIGN(Task* const task, find(change.task));
  if (!final(task->state) && task->state != TaskState::running) move(*task, change.to);
  return {};
}

Status PostgresBatch::add(const TaskReopened& change) {
  BERTH_ASSIGN(Task* const task, find(change.task));
  if (!final(task->state)) return {};
  move(*task, TaskState::waiting);
  task->forgiven = task->token;
  return {};
}

Status PostgresBatch::add(const TasksAdded& change) {
  BERTH_TRY(validate(change, tasks_));
  for (const NewTask& task : change.tasks) {
    if (!labels_.insert(task.label).second)
      return fail(ErrorKind::exists, "the run has a task '{}' already", clip(task.label));
    added_.add(++tasks_, task.label, task.params);
    named_.emplace(tasks_, Task());
    ++grown_[static_cast<std::size_t>(TaskState::waiting)];
  }
  return {};
}

Status PostgresBatch::add(const TaskKeyed& change) {
  BERTH_TRY(find(change.task));
  keys_[change.task.value] = &change;
  return {};
}

Status PostgresBatch::add(const ResultKept& change) {
  results_[change.digest] = {&change, ++results_kept_};
  return {};
}

Status PostgresBatch::add(const RunMoved& change) {
  store::add(run_moves_, kMoveRun, run_, change.to, change.error, change.at, change.result);
  return {};
}

Status PostgresBatch::add(const RunStepped& change) {
  store::add(run_moves_, kStepRun, run_, change.to, change.alloc, change.tries, change.last_try);
  return {};
}

Status PostgresBatch::add(const RunSpecified& change) {
  store::add(run_moves_, kSpecifyRun, run_, change.spec_json);
  return {};
}

void PostgresBatch::write(Statements& writes) const {
  Lists tasks, keys, last_metrics, results;
  for (const auto& [number, task] : named_)
    if (task.changed) tasks.add(number, task.state, task.token, task.forgiven);
  for (const auto& [number, key] : keys_) keys.add(number, key->digest, key->depends);
  for (const auto& [key, metric] : last_metrics_)
    last_metrics.add(key.first, key.second, metric.value, metric.first_sequence);
  for (const auto& [digest, kept] : results_)
    results.add(kept.nth, digest, kept.result->outputs, kept.result->origin, kept.result->at);

  const auto write_rows = [&](const char* sql, const Lists& rows) {
    if (!rows.empty()) store::add(writes, sql, run_, rows);
  };
  write_rows(kAddTasks, added_);
  write_rows(kMarkTasks, tasks);
  write_rows(kKeyTasks, keys);
  write_rows(kStartAttempts, started_);
  write_rows(kPlaceAttempts, placed_);
  write_rows(kEndAttempts, ended_);
  write_rows(kAddMetrics, metrics_);
  write_rows(kKeepLastMetrics, last_metrics);
  store::add(writes, kMarkRun, run_, last_token_, metrics_seen_, grown_[0], grown_[1], grown_[2],
             grown_[3], grown_[4], grown_[5], grown_[6]);
  writes.insert(writes.end(), run_moves_.begin(), run_moves_.end());
  if (results_kept_ > 0) store::add(writes, kKeepResults, results_kept_, results);
}

Result<PostgresBatch::Task*> PostgresBatch::find(TaskNumber number) {
  const auto found = named_.find(number.value);
  if (found == named_.end())
    return fail(ErrorKind::not_found, "run {} has no task {}", run_.value, number.value);
  return &found->second;
}

/// nullptr unless an attempt of the task runs under this token.
PostgresBatch::Task* PostgresBatch::current(TaskNumber number, Token token) {
  const auto found = named_.find(number.value);
  const bool runs = found != named_.end() && found->second.state == TaskState::running &&
                    found->second.token == token;
  return runs ? &found->second : nullptr;
}

void PostgresBatch::end(Task& task, const AttemptEnded& change) {
  move(task, change.next);
  ended_.add(change.task, change.token, change.at, change.exit_code, change.cause, change.detail,
             change.cpu_ms, change.peak_mem, change.log_begin, change.log_end);
}

void PostgresBatch::move(Task& task, TaskState to) {
  --grown_[static_cast<std::size_t>(task.state)];
  ++grown_[static_cast<std::size_t>(to)];
  task.state = to;
  task.changed = true;
}

}  // namespace berth::store
