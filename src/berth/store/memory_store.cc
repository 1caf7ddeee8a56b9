// The rows of runs in maps, for tests and simulation: the least that a store is.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "berth/base/text.h"
#include "berth/store/records.h"
#include "berth/store/store.h"
#include "berth/store/transition.h"

namespace berth::store {
namespace {

struct Task {
  TaskRow row;
  TaskRecord record;  // what no attempt has
  std::vector<AttemptRecord> attempts;
  std::vector<MetricRecord> metrics;
};

struct Run {
  RunRow row;
  std::string spec_json;
  std::vector<Task> tasks;
  std::unordered_set<std::string> labels;

  Task* find(TaskNumber number) {
    if (number.value < 1 || number.value > static_cast<std::int64_t>(tasks.size())) return nullptr;
    return &tasks[static_cast<std::size_t>(number.value - 1)];
  }
  void add(const NewTask& task) {
    TaskRecord& record = tasks.emplace_back().record;
    record.number = TaskNumber{static_cast<std::int64_t>(tasks.size())};
    record.label = task.label;
    record.params = task.params;
    labels.insert(task.label);
  }
};

RunRecord whole(const Run& run) {
  RunRecord record = run.row.record;
  record.spec_json = run.spec_json;
  return record;
}

TaskRecord whole(const Task& task) {
  TaskRecord record = task.record;
  record.state = task.row.state;
  record.token = task.row.token;
  record.forgiven = task.row.forgiven;
  for (const AttemptRecord& attempt : task.attempts) add_attempt(record, attempt);
  return record;
}

class MemoryStore final : public Store {
 public:
  Result<RunRecord> submit(const NewRun& run) override {
    BERTH_TRY(validate(run));
    const RunId id{++last_id_};
    Run& added = runs_[id];
    RunRecord& record = added.row.record;
    record.id = id;
    record.name = fmt::format("{}-{}", run.name, ++issued_[run.name]);
    record.kind = run.kind;
    record.directory = run.directory;
    record.priority = run.priority;
    record.created = run.created;
    record.counts.waiting = static_cast<std::int64_t>(run.tasks.size());
    added.spec_json = run.spec_json;
    for (const NewTask& task : run.tasks) added.add(task);
    return whole(added);
  }

  Result<RunRecord> take_over(RunId id, std::int64_t runner_pid, std::int64_t runner_started_at,
                              Wall now, std::span<const Token> alive) override {
    Run* const run = find(id);
    if (run == nullptr) return no_run(id);
    CurrentRows rows{.run = run->row, .tasks = {}, .labels = {}};
    for (const Task& task : run->tasks) rows.tasks.emplace_back(task.record.number, task.row);
    write(*run, store::take_over(std::move(rows), {runner_pid, runner_started_at, "", alive}, now));
    return whole(*run);
  }

  Result<Applied> apply(RunId id, std::span<const Change> changes) override {
    Run* const run = find(id);
    if (run == nullptr) return no_run(id);
    const RowsWanted wanted = rows_wanted(changes);
    CurrentRows rows{.run = run->row, .tasks = {}, .labels = {}};
    for (const TaskNumber number : wanted.tasks)
      if (const Task* task = run->find(number)) rows.tasks.emplace_back(number, task->row);
    for (const std::string& label : wanted.labels)
      if (run->labels.contains(label)) rows.labels.insert(label);
    BERTH_ASSIGN(const RowWrites writes, transition(std::move(rows), changes));
    write(*run, writes);
    return writes.applied;
  }

  Result<std::vector<RunRecord>> runs() override {
    std::vector<RunRecord> records;
    for (const auto& [id, run] : runs_) records.push_back(run.row.record);
    return records;
  }

  Result<RunRecord> find_run(std::string_view name) override {
    for (const auto& [id, run] : runs_)
      if (run.row.record.name == name) return whole(run);
    return fail(ErrorKind::not_found, "no run is called '{}'", clip(name));
  }

  Result<std::vector<TaskRecord>> tasks(RunId id) override {
    const Run* run = find(id);
    if (run == nullptr) return no_run(id);
    std::vector<TaskRecord> records;
    for (const Task& task : run->tasks) records.push_back(whole(task));
    return records;
  }

  Result<TaskRecord> find_task(RunId id, std::string_view label) override {
    if (const Run* run = find(id))
      for (const Task& task : run->tasks)
        if (task.record.label == label) return whole(task);
    return fail(ErrorKind::not_found, "run {} has no task '{}'", id.value, clip(label));
  }

  Result<News> news(RunId id, std::span<const TaskNumber> open, TaskNumber last) override {
    Run* run = find(id);
    if (run == nullptr) return no_run(id);
    News news{run->row.record, run->row.last_token, {}};
    for (const TaskNumber number : open) {
      const Task* task = run->find(number);
      if (task == nullptr) return no_task(id, number);
      news.tasks.push_back(whole(*task));
    }
    for (auto at = static_cast<std::size_t>(last.value); at < run->tasks.size(); ++at)
      news.tasks.push_back(whole(run->tasks[at]));
    return news;
  }

  Result<std::vector<AttemptRecord>> attempts(RunId id, TaskNumber number) override {
    Run* run = find(id);
    const Task* task = run == nullptr ? nullptr : run->find(number);
    if (task == nullptr) return no_task(id, number);
    return task->attempts;
  }

  Result<std::vector<MetricRecord>> metrics(RunId id, TaskNumber number,
                                            std::int64_t after) override {
    Run* run = find(id);
    const Task* task = run == nullptr ? nullptr : run->find(number);
    if (task == nullptr) return no_task(id, number);
    const auto first = std::ranges::upper_bound(task->metrics, after, {}, &MetricRecord::sequence);
    return std::vector(first, task->metrics.end());
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
    const auto found = results_.find(digest);
    if (found == results_.end())
      return fail(ErrorKind::not_found, "no result with the digest {}", clip(digest));
    return found->second;
  }

  Result<std::vector<ResultRecord>> results(std::int64_t after) override {
    std::vector<ResultRecord> records;
    for (const auto& [digest, record] : results_)
      if (record.sequence > after) records.push_back(record);
    std::ranges::sort(records, {}, &ResultRecord::sequence);
    return records;
  }

  Result<std::int64_t> forget_results(Wall unused_since) override {
    std::unordered_set<std::string> needed;
    for (const auto& [id, run] : runs_)
      if (run.row.record.state != RunState::done)
        for (const Task& task : run.tasks) needed.insert(task.record.digest);
    return static_cast<std::int64_t>(std::erase_if(results_, [&](const auto& each) {
      return each.second.used < unused_since && !needed.contains(each.first);
    }));
  }

 private:
  Run* find(RunId id) {
    const auto found = runs_.find(id);
    return found == runs_.end() ? nullptr : &found->second;
  }

  void write(Run& run, const RowWrites& rows) {
    const auto attempt = [&](TaskNumber task, Token token) -> AttemptRecord& {
      return *std::ranges::find(run.find(task)->attempts, token, &AttemptRecord::token);
    };
    for (const auto& added : rows.added_tasks) run.add(*added.task);
    const auto set_key = [&](const TaskKeyed& key) {
      TaskRecord& record = run.find(key.task)->record;
      record.digest = key.digest;
      record.depends = key.depends;
    };
    for (const auto& [number, row, key] : rows.tasks) {
      run.find(number)->row = row;
      if (key != nullptr) set_key(*key);
    }
    for (const TaskKeyed* key : rows.keys) set_key(*key);
    for (const auto& [number, record] : rows.added_attempts) {
      auto& attempts = run.find(number)->attempts;
      attempts.push_back(record);
      attempts.back().number = static_cast<std::int64_t>(attempts.size());
    }
    for (const ParamsSet* set : rows.params) run.find(set->task)->record.params = set->params;
    for (const AttemptKept& kept : rows.kept) attempt(kept.task, kept.token).lease = kept.lease;
    for (const AttemptPlaced& placed : rows.placed) {
      AttemptRecord& record = attempt(placed.task, placed.token);
      record.devices = placed.devices;
      record.started = placed.at.value_or(record.started);
    }
    for (const AttemptEnded& ended : rows.ended) end(attempt(ended.task, ended.token), ended);
    for (const auto& [metric, sequence] : rows.added_metrics)
      if (metric->value != kMissing)
        run.find(metric->task)
            ->metrics.push_back({metric->token, metric->name, metric->value, metric->at, sequence});
    for (const auto& last : rows.last_metrics)
      set_metric(run.find(last.task)->record.metrics, *last.name, last.value);
    for (const ResultKept* kept : rows.results) {
      ResultRecord& result = results_[kept->digest];
      const bool same =
          result.sequence > 0 && result.outputs == kept->outputs && result.origin == kept->origin;
      result = {kept->digest, kept->outputs, kept->origin, kept->at,
                same ? result.sequence : ++results_kept_};
    }
    run.row = rows.run;
    if (rows.spec_json != nullptr) run.spec_json = *rows.spec_json;
  }

  std::map<RunId, Run> runs_;
  std::map<std::string, ResultRecord> results_;  // by digest
  std::int64_t results_kept_ = 0;
  std::map<std::string, std::int64_t> issued_;
  std::int64_t last_id_ = 0;
};

}  // namespace

std::unique_ptr<Store> memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace berth::store
