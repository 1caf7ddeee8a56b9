#include "berth/store/transition.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "berth/base/text.h"
#include "berth/store/records.h"

namespace berth::store {
namespace {

class Transition {
 public:
  explicit Transition(CurrentRows rows)
      : labels_(std::move(rows.labels)), last_number_(rows.run.record.counts.total()) {
    writes_.run = std::move(rows.run);
    tasks_.reserve(rows.tasks.size());
    for (const auto& [number, row] : rows.tasks) tasks_.emplace(number, Task{.row = row});
  }

  Status add(const AttemptStarted& change) {
    Token& last = writes_.run.last_token;
    if (change.token <= last)
      return fail(ErrorKind::stale, "task {}: token {} is not above {}, the run's last",
                  change.task.value, change.token.value, last.value);
    BERTH_ASSIGN(Task* const task, find(change.task));
    if (final(task->row.state))
      return fail(ErrorKind::stale, "task {} is {}: no attempt can start", change.task.value,
                  name(task->row.state));
    if (task->row.state == TaskState::running)
      lose(change.task, *task, change.at, exec::Cause::superseded);
    move(*task, TaskState::running);
    task->row.token = last = change.token;
    task->added_attempt = writes_.added_attempts.size();
    AttemptRecord& attempt = writes_.added_attempts.emplace_back(change.task).record;
    attempt.token = change.token;
    attempt.started = change.at;
    attempt.resources = change.resources;
    attempt.host = change.host;
    attempt.devices = change.devices;
    attempt.lease = change.lease;
    return {};
  }

  Status add(const AttemptKept& change) {
    const Task* const task = running(change.task, change.token);
    if (task == nullptr) return {};
    if (AttemptRecord* const attempt = added_attempt(*task)) {
      attempt->lease = change.lease;
    } else {
      const auto [at, is_new] = kept_.try_emplace(change.token, writes_.kept.size());
      if (is_new) writes_.kept.emplace_back(change);
      writes_.kept[at->second].lease = change.lease;
    }
    return {};
  }

  Status add(const ParamsSet& change) {
    BERTH_TRY(validate(change));
    if (running(change.task, change.token) == nullptr) return {};
    const auto [at, is_new] = params_.try_emplace(change.task, writes_.params.size());
    if (is_new) writes_.params.push_back(&change);
    writes_.params[at->second] = &change;
    return {};
  }

  Status add(const AttemptPlaced& change) {
    const Task* const task = running(change.task, change.token);
    if (task == nullptr) return {};
    if (AttemptRecord* const attempt = added_attempt(*task)) {
      attempt->devices = change.devices;
      attempt->started = change.at.value_or(attempt->started);
    } else {
      const auto [at, is_new] = placed_.try_emplace(change.token, writes_.placed.size());
      if (is_new) writes_.placed.emplace_back(change);
      AttemptPlaced& placed = writes_.placed[at->second];
      placed.devices = change.devices;
      if (change.at) placed.at = change.at;
    }
    return {};
  }

  Status add(const AttemptEnded& change) {
    BERTH_TRY(validate(change));
    if (Task* const task = running(change.task, change.token))
      end(*task, change);
    else
      ++writes_.applied.refused;
    return {};
  }

  Status add(const MetricSeen& change) {
    if (running(change.task, change.token) == nullptr) return {};
    const std::int64_t sequence = ++writes_.run.metrics_seen;
    writes_.added_metrics.push_back({&change, sequence});
    const std::pair<TaskNumber, std::string_view> key(change.task, change.name);
    const auto [at, is_new] = last_metrics_.try_emplace(key, writes_.last_metrics.size());
    if (is_new) writes_.last_metrics.push_back({change.task, &change.name, 0, sequence});
    writes_.last_metrics[at->second].value = change.value;
    return {};
  }

  Status add(const TaskMoved& change) {
    BERTH_TRY(validate(change));
    BERTH_ASSIGN(Task* const task, find(change.task));
    if (!final(task->row.state) && task->row.state != TaskState::running) move(*task, change.to);
    return {};
  }

  Status add(const TaskReopened& change) {
    BERTH_ASSIGN(Task* const task, find(change.task));
    if (!final(task->row.state)) return {};
    move(*task, TaskState::waiting);
    task->row.forgiven = task->row.token;
    return {};
  }

  Status add(const TasksAdded& change) {
    BERTH_TRY(validate(change, last_number_));
    for (const NewTask& task : change.tasks) {
      if (!labels_.insert(task.label).second)
        return fail(ErrorKind::exists, "the run has a task '{}' already", clip(task.label));
      writes_.added_tasks.push_back({TaskNumber{++last_number_}, &task});
      ++writes_.run.record.counts.waiting;
    }
    return {};
  }

  Status add(const TaskKeyed& change) {
    BERTH_ASSIGN(Task* const task, find(change.task));
    task->key = &change;
    return {};
  }

  Status add(const ResultKept& change) {
    writes_.results.push_back(&change);
    return {};
  }

  Status add(const RunMoved& change) {
    RunRecord& run = writes_.run.record;
    const bool over = !is_open(change.to);
    run.state = change.to;
    run.error = change.error;
    run.result = change.result;
    run.ended = over ? std::optional(change.at) : std::nullopt;
    if (change.to == RunState::running && !run.started) run.started = change.at;
    return {};
  }

  Status add(const RunStepped& change) {
    RunRecord& run = writes_.run.record;
    run.phase = change.to;
    run.alloc = change.alloc;
    run.tries = change.tries;
    run.last_try = change.last_try;
    return {};
  }

  Status add(const RunSpecified& change) {
    writes_.spec_json = &change.spec_json;
    return {};
  }

  void add(const NewRunner& runner, Wall now) {
    const std::unordered_set<Token> alive(runner.alive.begin(), runner.alive.end());
    for (auto& [number, task] : tasks_) {
      if (task.row.state == TaskState::stopped)
        move(task, TaskState::waiting);
      else if (task.row.state == TaskState::running && !alive.contains(task.row.token))
        lose(number, task, now, exec::Cause::runner_lost);
    }
    RunRecord& run = writes_.run.record;
    run.epoch += 1;
    run.runner_pid = runner.pid;
    run.runner_started_at = runner.started_at;
    run.runner_host = runner.host;
    writes_.run.last_token = std::max(writes_.run.last_token, Token{run.epoch << 32});
  }

  RowWrites result() {
    for (const auto& [number, task] : tasks_) {
      if (task.changed)
        writes_.tasks.push_back({number, task.row, task.key});
      else if (task.key != nullptr)
        writes_.keys.push_back(task.key);
    }
    std::ranges::sort(writes_.tasks, {}, &RowWrites::ChangedTask::number);
    std::ranges::sort(writes_.keys, {}, [](const TaskKeyed* key) { return key->task; });
    return std::move(writes_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Task {
    TaskRow row;
    bool changed = false;
    std::size_t added_attempt = kNone;  // Its latest attempt, where that began in this batch.
    const TaskKeyed* key = nullptr;
  };

  /// Tasks that this batch added are there as well.
  Result<Task*> find(TaskNumber number) {
    const auto found = tasks_.find(number);
    if (found != tasks_.end()) return &found->second;
    if (writes_.added_tasks.empty() || number < writes_.added_tasks.front().number ||
        number.value > last_number_)
      return no_task(writes_.run.record.id, number);
    return &tasks_[number];
  }

  /// nullptr unless an attempt of the task runs under this token.
  Task* running(TaskNumber number, Token token) {
    const auto found = tasks_.find(number);
    const bool runs = found != tasks_.end() && found->second.row.state == TaskState::running &&
                      found->second.row.token == token;
    return runs ? &found->second : nullptr;
  }

  AttemptRecord* added_attempt(const Task& task) {
    return task.added_attempt == kNone ? nullptr
                                       : &writes_.added_attempts[task.added_attempt].record;
  }

  void move(Task& task, TaskState to) {
    Counts& counts = writes_.run.record.counts;
    --counts.of(task.row.state);
    ++counts.of(to);
    task.row.state = to;
    task.changed = true;
  }

  void end(Task& task, const AttemptEnded& change) {
    move(task, change.next);
    if (AttemptRecord* const attempt = added_attempt(task))
      store::end(*attempt, change);
    else
      writes_.ended.push_back(change);
  }

  /// Ends the running attempt for a reason that its worker did not report.
  void lose(TaskNumber number, Task& task, Wall at, exec::Cause cause) {
    AttemptEnded change;
    change.task = number;
    change.token = task.row.token;
    change.at = at;
    change.next = TaskState::waiting;
    change.cause = cause;
    end(task, change);
  }

  RowWrites writes_;
  std::unordered_map<TaskNumber, Task> tasks_;
  std::unordered_set<std::string> labels_;
  std::int64_t last_number_;
  // Where in the vector of `writes_` a row is.
  std::map<Token, std::size_t> placed_, kept_;
  std::map<TaskNumber, std::size_t> params_;
  std::map<std::pair<TaskNumber, std::string_view>, std::size_t> last_metrics_;
};

}  // namespace

RowsWanted rows_wanted(std::span<const Change> changes) {
  RowsWanted wanted;
  for (const Change& change : changes)
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.task; })
            wanted.tasks.push_back(one.task);
          else if constexpr (requires { one.tasks; })
            for (const NewTask& task : one.tasks) wanted.labels.push_back(task.label);
        },
        change);
  std::ranges::sort(wanted.tasks);
  const auto repeated = std::ranges::unique(wanted.tasks);
  wanted.tasks.erase(repeated.begin(), repeated.end());
  return wanted;
}

Result<RowWrites> transition(CurrentRows rows, std::span<const Change> changes,
                             std::optional<std::int64_t> epoch) {
  if (const auto now = rows.run.record.epoch; epoch && *epoch != now)
    return fail(ErrorKind::stale,
                "another runner has taken the run over (it is its runner number {}, this was {})",
                now, *epoch);
  Transition batch(std::move(rows));
  for (const Change& change : changes)
    BERTH_TRY(std::visit([&](const auto& one) { return batch.add(one); }, change));
  return batch.result();
}

RowWrites take_over(CurrentRows rows, const NewRunner& runner, Wall now) {
  Transition batch(std::move(rows));
  batch.add(runner, now);
  return batch.result();
}

}  // namespace berth::store
