// The store that a reader can check by eye; the other implementations are tested against it.
#include <algorithm>
#include <map>
#include <set>

#include "berth/base/text.h"
#include "berth/store/records.h"
#include "berth/store/store.h"

namespace berth::store {
namespace {

struct Task {
  TaskRecord record;
  std::vector<AttemptRecord> attempts;
  std::vector<MetricRecord> metrics;
};

struct Run {
  RunRecord record;  // its counts are made when asked for
  std::vector<Task> tasks;
  Token last_token;
  std::int64_t metrics_seen = 0;

  Task* find(TaskNumber number) {
    if (number.value < 1 || number.value > static_cast<std::int64_t>(tasks.size())) return nullptr;
    return &tasks[static_cast<std::size_t>(number.value - 1)];
  }
};

RunRecord with_counts(const Run& run) {
  RunRecord record = run.record;
  std::int64_t Counts::* const of_state[kTaskStates] = {
      &Counts::waiting, &Counts::running, &Counts::done,   &Counts::cached,
      &Counts::skipped, &Counts::failed,  &Counts::stopped};
  for (const Task& task : run.tasks)
    ++(record.counts.*of_state[static_cast<std::size_t>(task.record.state)]);
  return record;
}

bool current(const Task* task, Token token) {
  return task != nullptr && task->record.state == TaskState::running && task->record.token == token;
}

void end(Task& task, const AttemptEnded& change) {
  AttemptRecord& attempt = task.attempts.back();
  attempt.ended = change.at;
  attempt.exit_code = change.exit_code;
  attempt.cause = change.cause;
  attempt.detail = change.detail;
  attempt.cpu_ms = change.cpu_ms;
  attempt.peak_mem = change.peak_mem;
  attempt.log_begin = change.log_begin;
  attempt.log_end = change.log_end;
  task.record.state = change.next;
  task.record.ended = change.at;
  task.record.exit_code = change.exit_code;
  task.record.cause = change.cause;
}

/// Ends the running attempt for a reason that it did not report itself.
void lose(Task& task, Wall at, const char* cause) {
  AttemptEnded change;
  change.at = at;
  change.next = TaskState::waiting;
  change.cause = cause;
  end(task, change);
}

struct Results {
  std::map<std::string, ResultRecord> by_digest;
  std::int64_t last = 0;
};

/// Adds changes to a copy of a run, and of the results.
struct MemoryBatch {
  Run& run;
  Results& results;
  Applied applied;

  Status add(const AttemptStarted& change) {
    if (change.token <= run.last_token)
      return fail(ErrorKind::stale, "task {}: token {} is not above {}, the run's last",
                  change.task.value, change.token.value, run.last_token.value);
    Task* task = run.find(change.task);
    if (task == nullptr) return no_task(run.record.id, change.task);
    TaskRecord& record = task->record;
    if (final(record.state))
      return fail(ErrorKind::stale, "task {} is {}: no attempt can start", change.task.value,
                  name(record.state));
    if (record.state == TaskState::running) lose(*task, change.at, "superseded");
    run.last_token = change.token;
    record.state = TaskState::running;
    record.token = change.token;
    record.attempts += 1;
    record.started = change.at;
    record.ended = std::nullopt;
    record.resources = change.resources;
    record.host = change.host;
    record.devices = change.devices;
    AttemptRecord attempt;
    attempt.number = record.attempts;
    attempt.token = change.token;
    attempt.started = change.at;
    attempt.resources = change.resources;
    attempt.host = change.host;
    attempt.devices = change.devices;
    task->attempts.push_back(attempt);
    return {};
  }

  Status add(const AttemptPlaced& change) {
    Task* task = run.find(change.task);
    if (!current(task, change.token)) return {};
    task->record.devices = task->attempts.back().devices = change.devices;
    if (change.at) task->record.started = task->attempts.back().started = *change.at;
    return {};
  }

  Status add(const MetricSeen& change) {
    Task* task = run.find(change.task);
    if (!current(task, change.token)) return {};
    task->metrics.push_back(
        {change.token, change.name, change.value, change.at, ++run.metrics_seen});
    Numbers& last = task->record.metrics;
    const auto seen = std::find_if(last.begin(), last.end(),
                                   [&](const auto& metric) { return metric.first == change.name; });
    if (seen == last.end())
      last.emplace_back(change.name, change.value);
    else
      seen->second = change.value;
    return {};
  }

  Status add(const AttemptEnded& change) {
    BERTH_TRY(validate(change));
    Task* task = run.find(change.task);
    if (current(task, change.token))
      end(*task, change);
    else
      applied.refused += 1;
    return {};
  }

  Status add(const TaskMoved& change) {
    BERTH_TRY(validate(change));
    Task* task = run.find(change.task);
    if (task == nullptr) return no_task(run.record.id, change.task);
    TaskState& state = task->record.state;
    if (state == TaskState::waiting || state == TaskState::stopped) state = change.to;
    return {};
  }

  Status add(const TaskReopened& change) {
    Task* task = run.find(change.task);
    if (task == nullptr) return no_task(run.record.id, change.task);
    if (!final(task->record.state)) return {};
    task->record.state = TaskState::waiting;
    task->record.forgiven = task->record.token;
    return {};
  }

  Status add(const TasksAdded& change) {
    BERTH_TRY(validate(change, static_cast<std::int64_t>(run.tasks.size())));
    for (const NewTask& task : change.tasks) {
      for (const Task& other : run.tasks)
        if (other.record.label == task.label)
          return fail(ErrorKind::exists, "the run has a task '{}' already", clip(task.label));
      Task& made = run.tasks.emplace_back();
      made.record.number = TaskNumber{static_cast<std::int64_t>(run.tasks.size())};
      made.record.label = task.label;
      made.record.params = task.params;
    }
    return {};
  }

  Status add(const TaskKeyed& change) {
    Task* task = run.find(change.task);
    if (task == nullptr) return no_task(run.record.id, change.task);
    task->record.digest = change.digest;
    task->record.depends = change.depends;
    return {};
  }

  Status add(const ResultKept& change) {
    results.by_digest[change.digest] = {change.digest, change.outputs, change.origin, change.at,
                                        ++results.last};
    return {};
  }

  Status add(const RunMoved& change) {
    RunRecord& record = run.record;
    const bool over = change.to != RunState::waiting && change.to != RunState::running;
    record.state = change.to;
    record.error = change.error;
    record.result = change.result;
    record.ended = over ? std::optional(change.at) : std::nullopt;
    if (change.to == RunState::running && !record.started) record.started = change.at;
    return {};
  }

  Status add(const RunStepped& change) {
    run.record.phase = change.to;
    run.record.alloc = change.alloc;
    run.record.tries = change.tries;
    run.record.last_try = change.last_try;
    return {};
  }

  Status add(const RunSpecified& change) {
    run.record.spec_json = change.spec_json;
    return {};
  }
};

class MemoryStore final : public Store {
 public:
  Result<RunRecord> submit(const NewRun& run) override {
    BERTH_TRY(validate(run));
    const RunId id{++last_id_};
    Run& added = runs_[id];
    RunRecord& record = added.record;
    record.id = id;
    record.name = fmt::format("{}-{}", run.name, ++issued_[run.name]);
    record.kind = run.kind;
    record.spec_json = run.spec_json;
    record.directory = run.directory;
    record.priority = run.priority;
    record.created = run.created;
    for (const NewTask& task : run.tasks) {
      Task& made = added.tasks.emplace_back();
      made.record.number = TaskNumber{static_cast<std::int64_t>(added.tasks.size())};
      made.record.label = task.label;
      made.record.params = task.params;
    }
    return with_counts(added);
  }

  Result<RunRecord> take_over(RunId id, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    Run* run = find(id);
    if (run == nullptr) return no_run(id);
    run->record.epoch += 1;
    run->record.runner_pid = runner_pid;
    run->record.runner_started_at = runner_started_at;
    run->last_token = std::max(run->last_token, Token{run->record.epoch << 32});
    for (Task& task : run->tasks) {
      const bool goes_on = std::ranges::find(alive, task.record.token) != alive.end();
      if (task.record.state == TaskState::running && !goes_on) lose(task, now, "runner lost");
      if (task.record.state == TaskState::stopped) task.record.state = TaskState::waiting;
    }
    return with_counts(*run);
  }

  Result<Applied> apply(RunId id, std::span<const Change> changes) override {
    Run* run = find(id);
    if (run == nullptr) return no_run(id);
    Run copy = *run;
    Results results = results_;
    MemoryBatch batch{copy, results, {}};
    for (const Change& change : changes)
      BERTH_TRY(std::visit([&](const auto& one) { return batch.add(one); }, change));
    *run = std::move(copy);
    results_ = std::move(results);
    return batch.applied;
  }

  Result<std::vector<RunRecord>> runs() override {
    std::vector<RunRecord> records;
    for (const auto& [id, run] : runs_) records.emplace_back(with_counts(run)).spec_json.clear();
    return records;
  }

  Result<RunRecord> find_run(std::string_view name) override {
    for (const auto& [id, run] : runs_)
      if (run.record.name == name) return with_counts(run);
    return fail(ErrorKind::not_found, "no run is called '{}'", clip(name));
  }

  Result<std::vector<TaskRecord>> tasks(RunId id) override {
    const Run* run = find(id);
    if (run == nullptr) return no_run(id);
    std::vector<TaskRecord> records;
    for (const Task& task : run->tasks) records.push_back(task.record);
    return records;
  }

  Result<TaskRecord> find_task(RunId id, std::string_view label) override {
    if (const Run* run = find(id))
      for (const Task& task : run->tasks)
        if (task.record.label == label) return task.record;
    return fail(ErrorKind::not_found, "run {} has no task '{}'", id.value, clip(label));
  }

  Result<std::vector<AttemptRecord>> attempts(RunId id, TaskNumber number) override {
    Run* run = find(id);
    const Task* task = run == nullptr ? nullptr : run->find(number);
    if (task == nullptr) return no_task(id, number);
    return task->attempts;
  }

  Result<std::vector<MetricRecord>> metrics(RunId id, TaskNumber number) override {
    Run* run = find(id);
    const Task* task = run == nullptr ? nullptr : run->find(number);
    if (task == nullptr) return no_task(id, number);
    return task->metrics;
  }

  Result<std::vector<Usage>> usage(RunId id) override {
    const Run* run = find(id);
    if (run == nullptr) return no_run(id);
    std::map<std::string, Duration> held;
    for (const Task& task : run->tasks)
      for (const AttemptRecord& attempt : task.attempts)
        if (attempt.ended) held[attempt.resources] += *attempt.ended - attempt.started;
    std::vector<Usage> usage;
    for (const auto& [resources, time] : held) usage.push_back({resources, time});
    return usage;
  }

  Status remove(RunId id) override {
    if (runs_.erase(id) == 0) return no_run(id);
    return {};
  }

  Result<ResultRecord> result(const std::string& digest) override {
    const auto found = results_.by_digest.find(digest);
    if (found == results_.by_digest.end())
      return fail(ErrorKind::not_found, "no result with the digest {}", clip(digest));
    return found->second;
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    std::vector<ResultRecord> records;
    for (const auto& [digest, record] : results_.by_digest)
      if (record.sequence > after) records.push_back(record);
    std::ranges::sort(records, {}, &ResultRecord::sequence);
    return records;
  }

  Result<std::int64_t> forget_results(Wall unused_since) override {
    std::set<std::string> needed;
    for (const auto& [id, run] : runs_)
      if (run.record.state != RunState::done)
        for (const Task& task : run.tasks) needed.insert(task.record.digest);
    return static_cast<std::int64_t>(std::erase_if(results_.by_digest, [&](const auto& each) {
      return each.second.used < unused_since && !needed.contains(each.first);
    }));
  }

 private:
  Run* find(RunId id) {
    const auto found = runs_.find(id);
    return found == runs_.end() ? nullptr : &found->second;
  }

  std::map<RunId, Run> runs_;
  Results results_;
  std::map<std::string, std::int64_t> issued_;
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Store> memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace berth::store
