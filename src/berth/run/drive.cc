#include "berth/run/drive.h"

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/text.h"
#include "berth/cluster/local.h"
#include "berth/cluster/tracing.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"

namespace berth::run {
namespace {

/// How long something that happened may wait for company before it is made durable: one fsync then
/// serves many tasks, and nobody sees the difference.
constexpr Duration kGroupCommit = std::chrono::milliseconds(20);
constexpr std::size_t kLargestBatch = 4096;

store::TaskState state_of(schedule::TaskSettled::To to) {
  switch (to) {
    case schedule::TaskSettled::To::done: return store::TaskState::done;
    case schedule::TaskSettled::To::failed: return store::TaskState::failed;
    case schedule::TaskSettled::To::again: return store::TaskState::waiting;
    case schedule::TaskSettled::To::stopped: return store::TaskState::stopped;
    case schedule::TaskSettled::To::skipped: break;  // no trial waits for another
  }
  return store::TaskState::failed;
}

std::int64_t& counter(store::Counts& counts, store::TaskState state) {
  switch (state) {
    case store::TaskState::waiting: return counts.waiting;
    case store::TaskState::running: return counts.running;
    case store::TaskState::done: return counts.done;
    case store::TaskState::cached: return counts.cached;
    case store::TaskState::failed: return counts.failed;
    case store::TaskState::stopped: return counts.stopped;
  }
  return counts.waiting;
}

/// Rounds of what is ready, started and ready again, before the processes are looked at.
constexpr int kRounds = 8;

/// Causes of attempts that took none of the task's retries: it did not fail by itself.
constexpr std::array<std::string_view, 4> kBlameless{"runner lost", "worker lost", "stopped",
                                                     "cannot start now"};

Result<int> retries_used(store::Store& store, RunId run, const store::TaskRecord& task) {
  if (task.attempts == 0) return 0;
  BERTH_ASSIGN(const auto attempts, store.attempts(run, task.number));
  return static_cast<int>(std::ranges::count_if(attempts, [&](const auto& attempt) {
    return attempt.ended && attempt.token > task.forgiven &&
           std::ranges::find(kBlameless, attempt.cause) == kBlameless.end();
  }));
}

}  // namespace

schedule::Verdict verdict_of(const exec::Ended& ended) {
  switch (ended.cause) {
    case exec::Cause::ok: return schedule::Verdict::done;
    case exec::Cause::stopped: return schedule::Verdict::stopped;
    case exec::Cause::cannot_start: return schedule::Verdict::hopeless;
    case exec::Cause::worker_lost:
    case exec::Cause::short_of_means: return schedule::Verdict::not_its_fault;
    default: return schedule::Verdict::failed;
  }
}

Drive::Drive(Site& site, store::RunRecord record, std::unique_ptr<Workload> workload,
             Observer& observer, machine::Ledger ledger, LogWriter log, Left left)
    : site_(site),
      env_(*site.env),
      record_(std::move(record)),
      workload_(std::move(workload)),
      manner_(workload_->manner()),
      observer_(observer),
      labels_{{"run", record_.name}, {"program", record_.kind}},
      log_(std::move(log)),
      left_(std::move(left)),
      groups_(env_),
      directory_(run_directory(site_, record_.name)),
      host_name_(env_.host_name()) {
  cluster_ = cluster::tracing(env_,
                              std::make_unique<cluster::LocalCluster>(
                                  env_, std::move(ledger), [this] { return read_host(); }),
                              directory_ + "/trace.json");
}

Status Drive::take_over() {
  const auto self = env_.self();
  BERTH_ASSIGN(record_, site_.store->take_over(record_.id, self.pid, self.started_at, env_.wall(),
                                               left_.tokens));
  BERTH_ASSIGN(tasks_, site_.store->tasks(record_.id));
  BERTH_TRY(workload_->take_over(tasks_));
  for (const auto& step : manner_.steps) progress_.steps.push_back({.name = step, .counts = {}});
  std::vector<schedule::Task> tasks;
  tasks.reserve(tasks_.size());
  for (const auto& task : tasks_) {
    BERTH_ASSIGN(const int used, store::final(task.state)
                                     ? Result<int>(0)
                                     : retries_used(*site_.store, record_.id, task));
    tasks.push_back(schedule_task(task, workload_->wants(task).retries - used));
    ++counter(progress_.counts, task.state);
    if (!progress_.steps.empty())
      ++counter(progress_.steps.at(workload_->step_of(task)).counts, task.state);
    if (task.state == store::TaskState::done) consider_best(task);
  }
  scheduler_.emplace(schedule::Options{.epoch = record_.epoch,
                                       .seed = manner_.seed,
                                       .parallel = manner_.parallel,
                                       .stop_on_failure = manner_.stop_on_failure});
  scheduler_->add(tasks, effects_);
  progress_.run = record_.name;
  progress_.total = static_cast<std::int64_t>(tasks_.size());
  progress_.finished_before =
      progress_.counts.done + progress_.counts.cached + progress_.counts.failed;
  progress_.began = env_.now();
  batch_.emplace_back(store::RunMoved{store::RunState::running, env_.wall(), {}});
  return commit();
}

schedule::Task Drive::schedule_task(const store::TaskRecord& of, int retries) const {
  const Wants wants = workload_->wants(of);
  schedule::Task task{.number = of.number,
                      .resources = machine::charged(wants.resources),
                      .priority = wants.priority,
                      .retries = std::max(0, retries),
                      .fence = {of.token.value + (of.state == store::TaskState::running ? 0 : 1)},
                      .asks = manner_.in_turn};
  if (of.state == store::TaskState::failed) task.state = schedule::State::failed;
  // What is done is settled in its turn, where there is one.
  else if (store::final(of.state) && !manner_.in_turn)
    task.state = schedule::State::done;
  return task;
}

Result<store::RunRecord> Drive::go() {
  BERTH_TRY(take_over());
  BERTH_TRY(find_devices(site_, manner_.most));
  watch_devices();
  do {
    advance();
    if (workload_->wants_commit()) BERTH_TRY(commit());
  } while (more_ && !left_.tokens.empty() && !error_ && env_.stop_signals() == 0);
  join_agents();
  BERTH_TRY(commit());  // with what dead agents had told; then they are forgotten
  while (!over()) BERTH_TRY(turn());
  BERTH_TRY(settle());
  return site_.store->find_run(record_.name);
}

bool Drive::over() const {
  if (more_ && stops_heeded_ == 0 && !error_) return false;
  return scheduler_->over() || scheduler_->quiet();
}

/// Whatever has become possible is looked up, and started where there is room.
void Drive::advance() {
  more_ = false;
  for (int round = 0; manner_.in_turn && stops_heeded_ == 0 && !error_; ++round) {
    auto next = workload_->next();
    if (!next) return give_up(next.error());
    more_ = next->more || !next->start.empty() || !next->settled.empty();
    apply(*next);
    if (!more_ || round == kRounds || workload_->wants_commit()) return;
  }
}

void Drive::apply(Next& next) {
  add(std::move(next.added));
  for (const auto number : next.reopened) {
    batch_.emplace_back(store::TaskReopened{number});
    count(number, store::TaskState::waiting);
  }
  for (auto& change : next.changes) batch_.push_back(std::move(change));
  for (const auto& [number, to] : next.settled) {
    batch_.emplace_back(store::TaskMoved{number, to});
    count(number, to);
    scheduler_->settle(number, schedule::State::done, effects_);
  }
  for (const auto number : next.start) scheduler_->proceed(number, effects_);
  carry_out();
}

void Drive::add(std::vector<store::NewTask> added) {
  if (added.empty()) return;
  std::vector<schedule::Task> tasks;
  for (const auto& each : added) {
    store::TaskRecord& of = tasks_.emplace_back();
    of.number = {static_cast<std::int64_t>(tasks_.size())};
    of.label = each.label;
    of.params = each.params;
    ++progress_.counts.waiting;
    if (!progress_.steps.empty()) ++progress_.steps.at(workload_->step_of(of)).counts.waiting;
    tasks.push_back(schedule_task(of, workload_->wants(of).retries));
  }
  progress_.total = static_cast<std::int64_t>(tasks_.size());
  batch_.emplace_back(store::TasksAdded{std::move(added)});
  scheduler_->add(tasks, effects_);
}

/// What runs goes on to its end, and nothing more starts.
void Drive::give_up(Error error) {
  if (error_) return;
  observer_.on_note(error.message);
  error_ = std::move(error);
  scheduler_->halt();
}

Status Drive::turn() {
  heed_stop_signals();
  BERTH_TRY(seek_allocs());
  carry_out();
  watches_.clear();
  for (auto& berthed : berthed_) {
    const std::size_t before = watches_.size();
    berthed->worker->watch(watches_, observer_.wants_output());
    berthed->watches = watches_.size() - before;
  }
  const std::size_t of_health = watches_.size();
  if (health_) health_->watch(watches_);
  observer_.watch(watches_);
  BERTH_TRY(env_.wait(watches_, next_moment()));
  observer_.flush();
  if (health_)
    if (auto news = health_->turn(watches_[of_health].ready)) hear_of_devices(*std::move(news));
  messages_.clear();
  std::size_t at = 0;
  for (auto& berthed : berthed_) {
    berthed->worker->turn(std::span(watches_).subspan(at, berthed->watches), messages_);
    at += berthed->watches;
  }
  look_for_others();
  for (auto& message : messages_) handle(message);
  if (manner_.outlive && !messages_.empty() && !commit_at_) commit_at_ = env_.now() + kGroupCommit;
  bury_the_lost();
  for (auto& ended : std::exchange(unstarted_, {})) on_ended(std::move(ended));
  scheduler_->tick(env_.now(), effects_);
  advance();
  carry_out();  // the next tasks first: they run while the last ones are made durable
  BERTH_TRY(give_back());
  const bool due = commit_at_ && env_.now() >= *commit_at_;
  if (due || batch_.size() >= kLargestBatch || over() || workload_->wants_commit())
    BERTH_TRY(commit());
  show();
  return {};
}

Status Drive::settle() {
  BERTH_TRY(give_back());
  const store::Counts& counts = progress_.counts;
  const std::int64_t good = counts.done + counts.cached;
  const bool stopped = env_.stop_signals() > 0;
  // Under on_failure: continue one success is enough; a run of nothing but one command has to
  // succeed.
  const bool failed =
      error_ || (counts.failed > 0 && (good == 0 || !manner_.one_success_is_enough));
  store::RunState state = failed ? store::RunState::failed : store::RunState::done;
  const bool open = good + counts.failed < progress_.total || !workload_->complete();
  if (stopped && open && !error_) state = store::RunState::stopped;
  std::string error;
  if (state == store::RunState::failed)
    error =
        error_ ? error_->message : fmt::format("{} of {} failed", counts.failed, progress_.total);
  if (state == store::RunState::stopped)
    for (const auto& task : tasks_)
      if (task.state == store::TaskState::waiting)
        batch_.emplace_back(store::TaskMoved{task.number, store::TaskState::stopped});
  batch_.emplace_back(store::RunMoved{state, env_.wall(), std::move(error)});
  BERTH_TRY(commit());
  show();
  return {};
}

void Drive::heed_stop_signals() {
  const int signals = env_.stop_signals();
  if (signals == stops_heeded_) return;
  const bool again = stops_heeded_ > 0 || signals > 1;
  stops_heeded_ = signals;
  observer_.on_note(again ? "stopping at once" : "stopping; once more to stop at once");
  scheduler_->stop(effects_);
  if (!again) return;
  for (auto& berthed : berthed_) berthed->worker->tell(exec::Abandon{});
}

std::optional<Mono> Drive::next_moment() const {
  std::optional<Mono> first;
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& berthed : berthed_) consider(berthed->worker->deadline());
  consider(commit_at_);
  consider(seek_at_);
  consider(scheduler_->next_tick());
  consider(look_at_);
  if (health_) consider(health_->deadline());
  if (more_ || !unstarted_.empty()) consider(env_.now());
  consider(env_.now() + std::chrono::seconds(1));  // the screen's clock
  return first;
}

void Drive::handle(exec::FromWorker& message) {
  if (const auto* started = std::get_if<exec::Started>(&message)) {
    on_started(*started);
  } else if (const auto* output = std::get_if<exec::Output>(&message)) {
    log_.append(*output);
    observer_.on_output(*output);
  } else if (const auto* metric = std::get_if<exec::Metric>(&message)) {
    // An agent may still tell of what an earlier runner started and nobody recorded.
    if (live_.contains(metric->token.value)) on_metric(*metric);
  } else if (auto* ended = std::get_if<exec::Ended>(&message)) {
    on_ended(std::move(*ended));
  }
}

void Drive::on_started(const exec::Started& started) {
  os::log_event(env_, "started",
                {{"token", fmt::format("{}", started.token.value)},
                 {"reservation", machine::to_json(started.block)}});
  if (!started.advisory.empty() && progress_.counts.done + progress_.counts.failed == 0 &&
      progress_.counts.running <= 1)
    observer_.on_note(fmt::format("advisory only on this machine: {}", started.advisory));
}

void Drive::on_metric(const exec::Metric& metric) {
  store::TaskRecord& of = task(metric.task);
  const auto known =
      std::ranges::find(of.metrics, metric.name, &std::pair<std::string, double>::first);
  if (known != of.metrics.end())
    known->second = metric.value;
  else
    of.metrics.emplace_back(metric.name, metric.value);
  batch_.emplace_back(
      store::MetricSeen{metric.task, metric.token, metric.name, metric.value, env_.wall()});
}

void Drive::on_ended(exec::Ended ended) {
  const auto live = live_.find(ended.token.value);
  if (live == live_.end()) return;
  check_output(ended);
  os::log_event(env_, "ended",
                {{"token", fmt::format("{}", ended.token.value)},
                 {"cause", json_quote(exec::describe(ended))},
                 {"detail", json_quote(ended.detail)}});
  // One alloc each time that others were seen to wait: the next look tells whether it was enough.
  if (std::exchange(others_wait_, false)) scheduler_->close(live->second.worker);
  std::vector<schedule::Effect> effects;
  scheduler_->ended(ended.token, verdict_of(ended), env_.now(), effects);
  take_effects(ended, live->second, effects);
  live_.erase(live);
}

/// What is no success although its process ended well.
void Drive::check_output(exec::Ended& ended) {
  if (ended.cause != exec::Cause::ok) return;
  const auto status = workload_->finish(task(ended.task), ended.token, batch_);
  if (status) return;
  ended.cause = cause_of(status.error(), exec::Cause::not_as_declared);
  ended.detail = status.error().message;
}

/// Of the end of one attempt: its own settlement now, the rest in its turn.
void Drive::take_effects(const exec::Ended& ended, const Live& live,
                         const std::vector<schedule::Effect>& effects) {
  for (const auto& effect : effects) {
    const auto* settled = std::get_if<schedule::TaskSettled>(&effect);
    if (settled != nullptr && settled->token == ended.token)
      conclude(ended, live, state_of(settled->to));
    else
      effects_.push_back(effect);
  }
  log_.close(ended.token);
}

/// Records the end of an attempt, and what it means for its task.
void Drive::conclude(const exec::Ended& ended, const Live& live, store::TaskState to) {
  store::TaskRecord& of = task(ended.task);
  TaskEnd end{.label = of.label,
              .state = to,
              .cause = exec::describe(ended),
              .detail = ended.detail,
              .score = {},
              .again = to == store::TaskState::waiting};
  if (manner_.goal && ended.cause == exec::Cause::ok) {
    const auto score =
        std::ranges::find(of.metrics, manner_.goal->metric, &std::pair<std::string, double>::first);
    if (score != of.metrics.end())
      end.score = score->second;
    else if (end.detail.empty())
      end.detail = fmt::format("it reported no {}", manner_.goal->metric);
  }
  batch_.emplace_back(store::AttemptEnded{.task = ended.task,
                                          .token = ended.token,
                                          .at = env_.wall(),
                                          .next = to,
                                          .exit_code = ended.exit_code,
                                          .cause = end.cause,
                                          .detail = end.detail,
                                          .cpu_ms = to_ms(ended.cpu),
                                          .peak_mem = ended.peak_mem,
                                          .log_begin = live.log_begin,
                                          .log_end = log_.end()});
  count(ended.task, to);
  ends_.push_back(std::move(end));
  if (const auto status = workload_->ended(of, ended.token, to); !status) give_up(status.error());
}

void Drive::carry_out() {
  std::vector<schedule::Effect> effects;
  std::swap(effects, effects_);
  for (const auto& effect : effects) {
    if (const auto* start = std::get_if<schedule::StartAttempt>(&effect)) {
      launch(*start);
    } else if (const auto* cancel = std::get_if<schedule::CancelAttempt>(&effect)) {
      for (auto& berthed : berthed_)
        if (berthed->id == cancel->worker) berthed->worker->tell(exec::Cancel{cancel->token});
    }
  }
  if (!batch_.empty() && !commit_at_) commit_at_ = env_.now() + kGroupCommit;
}

void Drive::count(TaskNumber number, store::TaskState to) {
  store::TaskRecord& of = task(number);
  const auto move = [&](store::Counts& counts) {
    --counter(counts, of.state);
    ++counter(counts, to);
  };
  move(progress_.counts);
  if (!progress_.steps.empty()) move(progress_.steps.at(workload_->step_of(of)).counts);
  of.state = to;
}

void Drive::consider_best(const store::TaskRecord& of) {
  if (!manner_.goal) return;
  for (const auto& [name, value] : of.metrics) {
    if (name != manner_.goal->metric) continue;
    const bool better = !progress_.best || (manner_.goal->maximize ? value > progress_.best->value
                                                                   : value < progress_.best->value);
    if (better) progress_.best = Best{of.label, value};
  }
}

Status Drive::commit() {
  commit_at_.reset();
  BERTH_TRY(log_.flush());
  if (!batch_.empty()) {
    os::failpoint("before commit");
    BERTH_TRY(site_.store->apply(record_.id, batch_));
    os::failpoint("after commit");
  }
  for (const auto& change : batch_)
    if (const auto* ended = std::get_if<store::AttemptEnded>(&change))
      if (ended->next == store::TaskState::done) consider_best(task(ended->task));
  batch_.clear();
  workload_->committed();
  for (auto& berthed : berthed_) berthed->worker->acknowledge();
  os::failpoint("after acknowledge");
  for (const auto& directory : std::exchange(left_.gone, {}))
    (void)agent::forget_agent(env_, directory);
  for (const auto& end : ends_) observer_.on_task_end(end);
  ends_.clear();
  return {};
}

void Drive::show() {
  progress_.workers = static_cast<std::int64_t>(berthed_.size());
  observer_.on_progress(progress_, env_.now());
}

}  // namespace berth::run
