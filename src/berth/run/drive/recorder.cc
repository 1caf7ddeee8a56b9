#include "berth/run/drive/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "berth/base/json_writer.h"
#include "berth/experiment/constraint.h"
#include "berth/os/failpoint.h"

namespace berth::run {
namespace {

/// How long a change may wait for others before it is made durable: one fsync then serves many
/// tasks, and nobody sees the difference. Nothing else is done during a commit: on a disk that is
/// slow, or busy with others' work, more changes go into each.
constexpr Duration kGroupCommit = std::chrono::milliseconds(20);
constexpr Duration kGroupCommitMost = std::chrono::milliseconds(500);
constexpr int kWaitsPerCommit = 4;
constexpr std::size_t kLargestBatch = 4096;

}  // namespace

Recorder::Recorder(ActiveRun& run, store::Store& store, LogWriter log,
                   std::function<void()> committed)
    : run_(run), store_(store), log_(std::move(log)), committed_(std::move(committed)) {}

void Recorder::begin() {
  for (const auto& step : run_.options().steps)
    progress_.steps.push_back({.name = step, .counts = {}});
  for (const auto& task : run_.tasks) {
    ++progress_.counts.of(task.state);
    if (!progress_.steps.empty())
      ++progress_.steps.at(run_.workload->step_of(task)).counts.of(task.state);
    if (task.state == store::TaskState::done) consider_best(task);
  }
  const store::Counts& counts = progress_.counts;
  progress_.run = run_.record.name;
  count_all();
  progress_.finished_before = counts.done + counts.cached + counts.skipped + counts.failed;
  progress_.began = run_.env.now();
}

void Recorder::count_all() {
  const std::int64_t known = std::ssize(run_.tasks);
  const bool more = !run_.workload->complete();
  progress_.total = more ? std::max<std::int64_t>(known, run_.options().expected) : known;
}

void Recorder::add(store::Change change) {
  batch_.push_back(std::move(change));
  commit_soon();
}

void Recorder::add(std::vector<store::Change> changes) {
  for (auto& change : changes) add(std::move(change));
}

void Recorder::commit_soon() {
  if (!commit_at_) commit_at_ = run_.env.now() + company_wait_;
}

bool Recorder::due() const {
  return (commit_at_ && run_.env.now() >= *commit_at_) || batch_.size() >= kLargestBatch;
}

void Recorder::count(TaskNumber number, store::TaskState to) {
  store::TaskRecord& of = run_.task(number);
  const auto move = [&](store::Counts& counts) {
    --counts.of(of.state);
    ++counts.of(to);
  };
  move(progress_.counts);
  if (!progress_.steps.empty()) move(progress_.steps.at(run_.workload->step_of(of)).counts);
  of.state = to;
}

void Recorder::add_tasks(std::vector<store::NewTask> tasks) {
  for (const auto& each : tasks) {
    store::TaskRecord& of = run_.tasks.emplace_back();
    of.number = {std::ssize(run_.tasks)};
    of.label = each.label;
    of.params = each.params;
    ++progress_.counts.waiting;
    if (!progress_.steps.empty()) ++progress_.steps.at(run_.workload->step_of(of)).counts.waiting;
  }
  count_all();
  add(store::TasksAdded{std::move(tasks)});
}

void Recorder::add_metric(const exec::Metric& metric) {
  const double value = store::recorded_value(metric.value);
  store::set_metric(run_.task(metric.task).metrics, metric.name, value);
  add(store::MetricSeen{metric.task, metric.token, metric.name, value, run_.env.wall()});
}

void Recorder::add_end(const exec::Ended& ended, std::int64_t log_begin, store::TaskState to) {
  const store::TaskRecord& of = run_.task(ended.task);
  const auto& goal = run_.options().goal;
  TaskEnd end{.label = of.label,
              .state = to,
              .cause = ended.cause,
              .exit_code = ended.exit_code,
              .signal = ended.signal,
              .detail = ended.detail,
              .again = to == store::TaskState::waiting};
  if (goal && to == store::TaskState::done) end.score = experiment::score(*goal, of.metrics);
  add(store::AttemptEnded{.task = ended.task,
                          .token = ended.token,
                          .at = run_.env.wall(),
                          .next = to,
                          .cause = ended.cause,
                          .exit_code = ended.exit_code,
                          .signal = ended.signal,
                          .detail = ended.detail,
                          .cpu_ms = to_ms(ended.cpu),
                          .peak_mem = ended.peak_mem,
                          .log_begin = log_begin,
                          .log_end = log_.end()});
  count(ended.task, to);
  if (ended.cause != exec::Cause::given_back) ends_.push_back(std::move(end));
}

Status Recorder::commit() {
  commit_at_.reset();
  const Mono began = run_.env.now();
  BERTH_TRY(log_.flush());
  if (!batch_.empty()) {
    BERTH_TRY(run_.workload->make_durable());
    os::failpoint("before commit");
    BERTH_TRY(store_.apply(run_.record.id, batch_));
    os::failpoint("after commit");
    company_wait_ =
        std::clamp(kWaitsPerCommit * (run_.env.now() - began), kGroupCommit, kGroupCommitMost);
  }
  for (const auto& change : batch_)
    if (const auto* ended = std::get_if<store::AttemptEnded>(&change))
      if (ended->next == store::TaskState::done) {
        consider_best(run_.task(ended->task));
        progressed_ = true;
      }
  batch_.clear();
  run_.workload->committed();
  committed_();
  for (const auto& end : std::exchange(ends_, {})) run_.observer.on_task_end(end);
  return {};
}

void Recorder::consider_best(const store::TaskRecord& of) {
  const auto& goal = run_.options().goal;
  if (!goal) return;
  const auto score = experiment::feasible_score(*goal, run_.options().constraints, of.metrics);
  if (!score) return;
  auto& leaders = progress_.leaders;
  const experiment::Scored scored{*score, of.number.value};
  const auto behind = std::ranges::find_if(leaders, [&](const Leader& leader) {
    return experiment::is_better(*goal, scored, {leader.score, leader.number});
  });
  if (behind == leaders.end() && leaders.size() == Progress::kLeaders) return;
  leaders.insert(behind, Leader{of.label, *score, of.number.value, of.params});
  if (leaders.size() > Progress::kLeaders) leaders.pop_back();
}

std::string Recorder::result_json(std::optional<StoppedBy> by) const {
  const store::Counts& n = progress_.counts;
  JsonWriter json;
  json.object().add("done", n.done).add("cached", n.cached).add("skipped", n.skipped);
  json.add("failed", n.failed);
  if (!progress_.leaders.empty()) {
    const Leader& best = progress_.leaders.front();
    json.key("best").object().add("task", best.label).add("value", best.score).end();
  }
  if (by) json.add("stopped_by", kStoppedByNames.name(*by));
  return json.end().take();
}

}  // namespace berth::run
