#include "berth/run/drive.h"

#include <algorithm>
#include <array>
#include <utility>

#include "berth/base/text.h"
#include "berth/cluster/local.h"
#include "berth/cluster/tracing.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"
#include "berth/run/elsewhere.h"
#include "berth/store/database.h"

namespace berth::run {
namespace {

/// How long something that happened may wait for company before it is made durable: one fsync then
/// serves many tasks, and nobody sees the difference. Nothing else is done meanwhile: on a disk
/// that is slow, or busy with others' work, the company is larger.
constexpr Duration kGroupCommit = std::chrono::milliseconds(20);
constexpr Duration kGroupCommitMost = std::chrono::milliseconds(500);
constexpr int kWaitsPerCommit = 4;
constexpr std::size_t kMostAdvice = 16;  // notes that limits are advice
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

/// Rounds of what is ready, started and ready again, before the processes are looked at.
constexpr int kRounds = 8;

}  // namespace

std::int64_t& counter(store::Counts& counts, store::TaskState state) {
  switch (state) {
    case store::TaskState::waiting: return counts.waiting;
    case store::TaskState::running: return counts.running;
    case store::TaskState::done: return counts.done;
    case store::TaskState::cached: return counts.cached;
    case store::TaskState::skipped: return counts.skipped;
    case store::TaskState::failed: return counts.failed;
    case store::TaskState::stopped: return counts.stopped;
  }
  return counts.waiting;
}

schedule::Verdict verdict_of(const exec::Ended& ended) {
  switch (ended.cause) {
    case exec::Cause::ok:
    case exec::Cause::stopped_early: return schedule::Verdict::done;
    case exec::Cause::stopped: return schedule::Verdict::stopped;
    case exec::Cause::cannot_start: return schedule::Verdict::permanent;
    case exec::Cause::given_back: return schedule::Verdict::given_back;
    case exec::Cause::worker_lost:
    case exec::Cause::short_of_means: return schedule::Verdict::infrastructure_failure;
    default: return schedule::Verdict::failed;
  }
}

/// To the scheduler devices are counted; that a worker's are such as a selection accepts is a
/// resource of its own, of which it has none, plenty, or one where whole devices are named that
/// only one task can have.
std::string name_of_selection(std::size_t at) {
  return fmt::format("selection:{}", at);
}

/// Whether tasks of the selection may have any of the worker's devices, and need no certain ones.
bool serves(const Berthed& berthed, const machine::DeviceSelection& selection) {
  if (berthed.selection == selection) return true;
  const machine::DeviceSelection by_size{.slot_sizes = selection.slot_sizes,
                                         .memory_min = selection.memory_min};
  return selection == by_size &&
         std::ranges::all_of(berthed.alloc.block.devices, [&](const auto& device) {
           return device.whole && machine::accepts(selection, device);
         });
}

Resources Drive::schedule_resources(const Berthed& berthed, Resources resources,
                                    std::span<const schedule::Earlier> runs) const {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 32;
  for (std::size_t i = 0; i < manner_.selections.size(); ++i) {
    const auto& selection = manner_.selections[i];
    const std::int64_t running = std::ranges::count_if(runs, [&](const auto& each) {
      const auto& of = tasks_.at(static_cast<std::size_t>(each.task.value - 1));
      return workload_->wants(of).selection == selection;
    });
    const bool alone = !selection.required.empty() && !manner_.shares_devices;
    if (running > 0 || serves(berthed, selection))
      resources.set(name_of_selection(i), alone ? std::max<std::int64_t>(1, running) : kPlenty);
  }
  return resources;
}

schedule::Task Drive::schedule_task(const store::TaskRecord& of, int retries) const {
  const Wants wants = workload_->wants(of);
  schedule::Task task{.number = of.number,
                      .resources = machine::charged(wants.resources),
                      .priority = wants.priority,
                      .retries = std::max(0, retries),
                      .fence = {of.token.value + (of.state == store::TaskState::running ? 0 : 1)},
                      .asks = manner_.in_turn || !may_start(of.number)};
  const auto selection = std::ranges::find(manner_.selections, wants.selection);
  if (selection != manner_.selections.end())
    task.resources.set(
        name_of_selection(static_cast<std::size_t>(selection - manner_.selections.begin())), 1);
  if (of.state == store::TaskState::failed) task.state = schedule::State::failed;
  // What is done is settled in its turn, where there is one.
  else if (store::final(of.state) && !manner_.in_turn)
    task.state = schedule::State::done;
  return task;
}

bool Drive::over() const {
  if ((more_ || workload_->busy()) && stops_heeded_ == 0 && !error_) return false;
  return scheduler_->over() || scheduler_->quiet();
}

/// Whatever has become possible is looked up, and started where there is room. What may pass is
/// for the runner to try again.
Status Drive::advance() {
  more_ = false;
  for (int round = 0; stops_heeded_ == 0 && !error_; ++round) {
    auto next = workload_->next();
    if (!next && (next.error().kind == ErrorKind::full || next.error().kind == ErrorKind::busy))
      return std::unexpected(std::move(next).error());
    if (!next) {
      give_up(std::move(next).error());
      return {};
    }
    more_ = next->more || !next->added.empty() || !next->start.empty() || !next->settled.empty();
    apply(*next);
    if (!more_ || round == kRounds || workload_->wants_commit()) return {};
  }
  return {};
}

void Drive::apply(Next& next) {
  add(std::move(next.added));
  for (const auto number : next.reopened) {
    batch_.emplace_back(store::TaskReopened{number});
    count(number, store::TaskState::waiting);
  }
  for (auto& change : next.changes) batch_.push_back(std::move(change));
  for (const auto& note : next.notes) observer_.on_note(note);
  for (const auto& [number, to] : next.settled) {
    batch_.emplace_back(store::TaskMoved{number, to});
    count(number, to);
    scheduler_->settle(number, schedule::State::done, effects_);
  }
  for (const auto number : next.start)
    if (may_start(number)) scheduler_->proceed(number, effects_);
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

/// The run cannot go on now. Its tasks stay open; why is recorded with it.
Status Drive::leave_for_resume(Error error) {
  batch_.emplace_back(store::RunMoved{store::RunState::running, env_.wall(), error.message});
  BERTH_TRY(commit());
  return std::unexpected(std::move(error));
}

Status Drive::turn() {
  leaves_store_at_.reset();
  heed_stop_signals();
  BERTH_TRY(store::keep_claims(*site_.store));
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
  workload_->watch(watches_);
  BERTH_TRY(env_.wait(watches_, next_moment()));
  observer_.flush();
  if (health_)
    if (auto news = health_->turn(watches_[of_health].ready)) hear_of_devices(*std::move(news));
  messages_.clear();
  std::size_t at = 0;
  for (auto& berthed : berthed_) {
    std::ranges::move(std::exchange(berthed->heard, {}), std::back_inserter(messages_));
    berthed->worker->turn(std::span(watches_).subspan(at, berthed->watches), messages_);
    at += berthed->watches;
  }
  look_for_others();
  keep_leases();
  leave_the_silent();
  tend_clusters();
  close_the_lost();
  for (auto& message : messages_) handle(message);
  hear_of_the_silent();
  for (auto& finished : workload_->turn()) on_finished(std::move(finished));
  if (manner_.outlive && !messages_.empty() && !commit_at_) commit_at_ = env_.now() + company_wait_;
  bury_the_lost();
  for (auto& ended : std::exchange(unstarted_, {})) on_ended(std::move(ended), true);
  scheduler_->tick(env_.now(), effects_);
  BERTH_TRY(advance());
  hear_again_of_the_early();
  carry_out();  // the next tasks first: they run while the last ones are made durable
  if (no_start_) return leave_for_resume(*no_start_);
  BERTH_TRY(give_back());
  step();
  const bool due = commit_at_ && env_.now() >= *commit_at_;
  if (due || batch_.size() >= kLargestBatch || over() || workload_->wants_commit())
    BERTH_TRY(commit());
  show();
  return {};
}

std::optional<Mono> Drive::next_moment() const {
  std::optional<Mono> first;
  const auto consider = [&](std::optional<Mono> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& berthed : berthed_)
    consider(berthed->heard.empty() ? berthed->worker->deadline() : env_.now());
  consider(commit_at_);
  for (const auto& leasing : leasings_) {
    consider(leasing.seek_at);
    if (leasing.source.tend) consider(leasing.tend_at);
  }
  for (const auto& berthed : berthed_) {
    consider(berthed->keepalive_at);
    consider(berthed->alloc.closes);
  }
  consider(workload_->deadline());
  consider(scheduler_->next_tick());
  consider(look_at_);
  consider(gives_up_at_);
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
  } else if (const auto* notice = std::get_if<exec::Notice>(&message)) {
    if (live_.contains(notice->token.value))
      observer_.on_note(
          fmt::format("{}/{}: {}", record_.name, task(notice->task).label, notice->text));
  } else if (auto* ended = std::get_if<exec::Ended>(&message)) {
    on_ended(std::move(*ended), true);
  }
}

void Drive::on_started(const exec::Started& started) {
  no_start_since_.reset();
  const auto live = live_.find(started.token.value);
  if (live != live_.end()) {
    Live& one = live->second;
    one.started = true;
    brief_.began(started.token, name_of(started.task), env_.now());
    // The worker chooses among what is free of its machine, where others may be.
    auto devices = uuids_json(started.block.devices);
    if (one.ahead || devices != one.devices) {
      const auto at = one.ahead ? std::optional(env_.wall()) : std::nullopt;
      batch_.emplace_back(store::AttemptPlaced{started.task, started.token, devices, at});
    }
    one.devices = std::move(devices);
    if (std::exchange(one.ahead, false)) count(started.task, store::TaskState::running);
  }
  if (os::logging())
    os::log_event(env_, "started",
                  {{"token", fmt::format("{}", started.token.value)},
                   {"reservation", machine::to_json(started.block)}});
  if (started.advisory.empty() || live == live_.end() || advised_.size() == kMostAdvice) return;
  for (const auto& berthed : berthed_) {
    if (berthed->id != live->second.worker) continue;
    const bool elsewhere = leasings_[berthed->source].source.staff != nullptr;
    auto note = fmt::format("advisory only on {}: {}",
                            elsewhere ? berthed->alloc.machine : "this machine", started.advisory);
    if (advised_.insert(note).second) observer_.on_note(note);
  }
}

void Drive::on_metric(const exec::Metric& metric) {
  const Heard heard = workload_->hear(task(metric.task), metric);
  if (heard.ends) end_early(metric.token);
  if (!heard.counts) return;
  record(metric);
  if (manner_.goal && metric.name == manner_.goal->metric)
    if (const auto best =
            experiment::better_score(*manner_.goal, task(metric.task).metrics, metric.value))
      record({metric.task, metric.token, experiment::score_name(*manner_.goal), *best});
}

/// It has its grace, and whatever it says meanwhile is not heard.
void Drive::end_early(Token token) {
  const auto live = live_.find(token.value);
  if (live == live_.end()) return;
  for (auto& berthed : berthed_)
    if (berthed->id == live->second.worker) berthed->worker->tell(exec::Cancel{token});
}

void Drive::record(const exec::Metric& metric) {
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
              .cause = ended.cause,
              .exit_code = ended.exit_code,
              .signal = ended.signal,
              .detail = ended.detail,
              .score = {},
              .again = to == store::TaskState::waiting};
  if (manner_.goal && to == store::TaskState::done)
    end.score = experiment::score(*manner_.goal, of.metrics);
  batch_.emplace_back(store::AttemptEnded{.task = ended.task,
                                          .token = ended.token,
                                          .at = env_.wall(),
                                          .next = to,
                                          .cause = ended.cause,
                                          .exit_code = ended.exit_code,
                                          .signal = ended.signal,
                                          .detail = ended.detail,
                                          .cpu_ms = to_ms(ended.cpu),
                                          .peak_mem = ended.peak_mem,
                                          .log_begin = live.log_begin,
                                          .log_end = log_.end()});
  progressed_ = progressed_ || to == store::TaskState::done;
  count(ended.task, to);
  if (ended.cause != exec::Cause::given_back) ends_.push_back(std::move(end));
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
  send_ahead();
  if (!batch_.empty() && !commit_at_) commit_at_ = env_.now() + company_wait_;
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
  const auto value = experiment::score(*manner_.goal, of.metrics);
  const bool better =
      value && (!progress_.best || (manner_.goal->maximize ? *value > progress_.best->value
                                                           : *value < progress_.best->value));
  if (better) progress_.best = Best{of.label, *value};
}

Status Drive::commit() {
  commit_at_.reset();
  const Mono began = env_.now();
  BERTH_TRY(log_.flush());
  if (!batch_.empty()) {
    BERTH_TRY(workload_->make_durable());
    os::failpoint("before commit");
    BERTH_TRY(site_.store->apply(record_.id, batch_));
    os::failpoint("after commit");
    company_wait_ =
        std::clamp(kWaitsPerCommit * (env_.now() - began), kGroupCommit, kGroupCommitMost);
  }
  for (const auto& change : batch_)
    if (const auto* ended = std::get_if<store::AttemptEnded>(&change))
      if (ended->next == store::TaskState::done) consider_best(task(ended->task));
  batch_.clear();
  workload_->committed();
  // What has ended and is not recorded is told again to a later runner.
  const auto unrecorded = [&](const auto& one) {
    return !one->heard.empty() || std::ranges::any_of(finishing_, [&](const auto& each) {
      return live_.at(each.first).worker == one->id;
    });
  };
  for (auto& berthed : berthed_)
    if (!unrecorded(berthed)) berthed->worker->acknowledge();
  os::failpoint("after acknowledge");
  for (const auto& directory : std::exchange(left_.gone, {}))
    (void)agent::forget_agent(env_, directory);
  for (const auto& end : ends_) observer_.on_task_end(end);
  ends_.clear();
  return {};
}

void Drive::show() {
  progress_.workers = static_cast<std::int64_t>(berthed_.size());
  progress_.doing.clear();
  for (const auto& berthed : berthed_)
    if (progress_.doing.empty()) progress_.doing = berthed->worker->doing();
  auto& why = live_.empty() ? progress_.waiting_for : progress_.doing;
  auto& since = live_.empty() ? progress_.waiting_since : progress_.doing_since;
  progress_.waiting_since.reset();
  progress_.doing_since.reset();
  for (const auto& under_way : {workload_->reading(), workload_->bringing()}) {
    if (!under_way || !why.empty()) continue;
    why = under_way->what;
    since = under_way->since;
  }
  // This machine can be asked by anybody; what others answered only the runner knows.
  if (leasings_.front().source.staff && kept_waiting_for_ != progress_.waiting_for) {
    kept_waiting_for_ = progress_.waiting_for;
    (void)env_.replace_file(waits_file(directory_), progress_.waiting_for, 0600);
  }
  observer_.on_progress(progress_, env_.now());
}

}  // namespace berth::run
