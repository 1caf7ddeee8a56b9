#include "berth/run/drive/attempts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "berth/base/json.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/exec/metrics.h"
#include "berth/os/failpoint.h"
#include "berth/os/log.h"

namespace berth::run {
namespace {

/// How much work waits at a worker behind what runs there, of tasks that are over before the next
/// could be sent: enough for a machine that is an ocean away.
constexpr Duration kWorkAhead = std::chrono::milliseconds(100);
constexpr std::int64_t kMostAhead = 16;
/// After that it is given back: what it stands behind is not brief after all.
constexpr Duration kWaitsMost = std::chrono::milliseconds(500);
constexpr int kNoSpaceMost = 3;          // starts of a task that found no room for its files
constexpr std::size_t kMostAdvice = 16;  // notes that limits are advice

store::TaskState state_of(schedule::TaskSettled::To to) {
  switch (to) {
    case schedule::TaskSettled::To::done: return store::TaskState::done;
    case schedule::TaskSettled::To::failed: return store::TaskState::failed;
    case schedule::TaskSettled::To::again: return store::TaskState::waiting;
    case schedule::TaskSettled::To::stopped: return store::TaskState::stopped;
  }
  return store::TaskState::failed;
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

/// How an attempt ends when what has to be done around its process cannot be.
exec::Cause cause_of(const Error& error, exec::Cause otherwise) {
  if (retryable(error.kind)) return exec::Cause::short_of_means;
  return error.kind == ErrorKind::interrupted ? exec::Cause::stopped : otherwise;
}

void spoil(exec::Ended& ended, const Error& error) {
  ended.cause = cause_of(error, exec::Cause::not_as_declared);
  ended.detail = error.message + (ended.detail.empty() ? "" : "; " + ended.detail);
}

/// ["GPU-…"]; "" where there are none.
std::string uuids_json(std::span<const machine::DeviceShare> devices) {
  std::vector<std::string> uuids;
  for (const auto& device : devices) uuids.push_back(json_quote(device.uuid));
  return uuids.empty() ? "" : "[" + join(uuids, ",") + "]";
}

}  // namespace

void Attempts::carry_out() {
  for (const auto& effect : std::exchange(run_.effects, {})) {
    if (const auto* start = std::get_if<schedule::StartAttempt>(&effect))
      launch(*start);
    else if (const auto* cancel = std::get_if<schedule::CancelAttempt>(&effect))
      workers_.send(cancel->worker, exec::Cancel{cancel->token});
  }
  send_ahead();
}

/// Brief tasks go to workers that would idle while they wait to hear of the next. A search that
/// learns is asked as late as can be.
void Attempts::send_ahead() {
  if (!brief_.are_any() || run_.options().learns) return;
  const Mono now = run_.env.now();
  const schedule::Scheduler::AheadPolicy policy{
      .most = [&](TaskNumber number) -> std::size_t {
        const Duration typical = brief_.typical(run_.name_of(number));
        if (typical == Duration(0)) return 0;
        return static_cast<std::size_t>(
            std::clamp<std::int64_t>(kWorkAhead / typical, 1, kMostAhead));
      },
      .ends_soon =
          [&](TaskNumber number, Token token) {
            return brief_.typical(run_.name_of(number)) > Duration(0) &&
                   !brief_.overdue(token, now);
          }};
  std::vector<schedule::Effect> effects;
  for (const auto& slot : workers_)
    if (slot->worker->queues()) run_.scheduler->send_ahead(slot->id, policy, effects);
  for (const auto& effect : effects) launch(std::get<schedule::StartAttempt>(effect));
}

void Attempts::launch(const schedule::StartAttempt& start) {
  store::TaskRecord& of = run_.task(start.task);
  of.metrics.clear();
  const std::int64_t attempt = run_.history(start.task).attempt();
  auto launch = run_.workload->launch(of, start.token, attempt);
  const ResourceRequest wanted = run_.request(start.task);
  WorkerSlot* slot = workers_.find(start.worker);
  BERTH_ASSERT(slot != nullptr);
  if (os::logging())
    os::log_event(run_.env, "launch",
                  {{"token", fmt::format("{}", start.token.value)},
                   {"request", machine::to_json({wanted.resources, run_.name_of(start.task),
                                                 wanted.selection})}});
  const bool ahead = start.behind.value > 0;
  live_.emplace(start.token.value, Live{.worker = start.worker,
                                        .task = start.task,
                                        .log_begin = recorder_.log().end(),
                                        .ahead = ahead});
  recorder_.add(store::AttemptStarted{start.task, start.token, run_.env.wall(),
                                      to_json(wanted.resources), slot->lease.alloc.machine});
  if (!ahead) recorder_.count(start.task, store::TaskState::running);
  if (launch) {
    launch->request.resources = wanted.resources;
    launch->timeout = wanted.timeout;
    launch->behind = unbegun_.resolve(start.behind);
    launch->waits_most = kWaitsMost;
    slot->worker->send(*std::move(launch));
    return os::failpoint("after launch");
  }
  if (ahead) unbegun_.add(start.token, start.behind);
  unstarted_.push_back(exec::ended_as(cause_of(launch.error(), exec::Cause::cannot_start),
                                      start.task, start.token, launch.error().message));
}

void Attempts::handle(exec::FromWorker message) {
  if (const auto* started = std::get_if<exec::Started>(&message)) {
    on_started(*started);
  } else if (const auto* output = std::get_if<exec::Output>(&message)) {
    // Where an acknowledgement was lost, what is recorded as ended is told again.
    if (!is_known(output->token) && !run_.is_current(output->task, output->token)) return;
    recorder_.log().append(*output);
    run_.observer.on_output(*output);
  } else if (const auto* metric = std::get_if<exec::Metric>(&message)) {
    // An agent may still report of what an earlier runner started and nobody recorded.
    if (is_known(metric->token)) report_metric(*metric);
  } else if (const auto* notice = std::get_if<exec::Notice>(&message)) {
    if (live_.contains(notice->token.value))
      run_.observer.on_note(fmt::format("{}: {}", run_.name_of(notice->task), notice->text));
  } else if (auto* ended = std::get_if<exec::Ended>(&message)) {
    end(std::move(*ended), true);
  }
}

/// What the worker reports of the attempt's place is what is recorded: nobody else knows it.
void Attempts::on_started(const exec::Started& started) {
  no_start_since_.reset();
  if (os::logging())
    os::log_event(run_.env, "started",
                  {{"token", fmt::format("{}", started.token.value)},
                   {"reservation", machine::to_json(started.block)}});
  const auto live = live_.find(started.token.value);
  if (live == live_.end() || live->second.unknown) return;
  Live& one = live->second;
  one.started = true;
  brief_.began(started.token, run_.name_of(started.task), run_.env.now());
  auto devices = uuids_json(started.block.devices);
  if (one.ahead || devices != one.devices) {
    const auto at = one.ahead ? std::optional(run_.env.wall()) : std::nullopt;
    recorder_.add(store::AttemptPlaced{started.task, started.token, devices, at});
  }
  one.devices = std::move(devices);
  if (std::exchange(one.ahead, false)) recorder_.count(started.task, store::TaskState::running);
  if (!started.advisory.empty()) note_advice(started, one);
}

void Attempts::note_advice(const exec::Started& started, const Live& live) {
  const WorkerSlot* slot = workers_.find(live.worker);
  if (slot == nullptr || advice_.size() == kMostAdvice) return;
  auto note = fmt::format("advisory only on {}: {}",
                          slot->lease.is_remote ? slot->lease.alloc.machine : "this machine",
                          started.advisory);
  if (advice_.insert(note).second) run_.observer.on_note(note);
}

void Attempts::report_metric(exec::Metric metric) {
  const auto& goal = run_.options().goal;
  const auto& labels = run_.options().score_labels;
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (metric.name == fmt::format("score_{}", i + 2)) {
      metric.name = labels[i];
      break;
    }
  const store::TaskRecord& of = run_.task(metric.task);
  if (!run_.workload->on_metric(of, metric)) return;
  const bool finite = std::isfinite(metric.value);
  if (!finite && missing_.emplace(metric.token, metric.name).second)
    run_.observer.on_note(
        fmt::format("{}: {}", run_.name_of(metric.task),
                    exec::missing_note(metric.name, exec::non_finite_text(metric.value))));
  recorder_.add_metric(metric);
  if (goal && finite && metric.name == goal->metric)
    if (const auto best =
            experiment::better_score(*goal, run_.task(metric.task).metrics, metric.value))
      recorder_.add_metric({metric.task, metric.token, experiment::score_name(*goal), *best});
}

/// Asks attempts to end whose reports the workload has judged.
void Attempts::end_hopeless() {
  for (const Token token : run_.workload->take_hopeless())
    if (const auto live = live_.find(token.value); live != live_.end())
      workers_.send(live->second.worker, exec::Cancel{token});
}

void Attempts::end(exec::Ended ended, bool later) {
  const auto live = live_.find(ended.token.value);
  if (live == live_.end()) return;
  if (has_later(ended)) {
    early_.push_back(std::move(ended));
    return;
  }
  if (live->second.unknown) return settle_unknown(ended.token);
  if (ended.no_space && ++no_space_[ended.task.value] >= kNoSpaceMost)
    ended.cause = exec::Cause::cannot_start;
  finishing_.erase(ended.token.value);
  if (check_output(ended, later)) return settle(ended);
  finishing_.emplace(ended.token.value, std::move(ended));
}

void Attempts::on_finished(Finished finished) {
  auto node = finishing_.extract(finished.token.value);
  if (!node) return;  // its worker was lost meanwhile
  if (!finished.note.empty()) run_.observer.on_note(finished.note);
  recorder_.add(std::move(finished.changes));
  if (!finished.status) spoil(node.mapped(), finished.status.error());
  settle(node.mapped());
}

/// What an earlier runner started when the attempt had ended, and nobody recorded, ends too: before
/// that the task must not start again.
bool Attempts::has_later(const exec::Ended& ended) const {
  return std::ranges::any_of(live_, [&](const auto& each) {
    const auto& [token, live] = each;
    return live.unknown && live.task == ended.task && token > ended.token.value;
  });
}

void Attempts::settle_unknown(Token token) {
  std::vector<schedule::Effect> effects;
  run_.scheduler->ended(token, schedule::Verdict::given_back, run_.env.now(), effects);
  for (const auto& effect : effects)
    if (!std::holds_alternative<schedule::TaskSettled>(effect)) run_.effects.push_back(effect);
  live_.erase(token.value);
}

void Attempts::settle(const exec::Ended& ended) {
  const auto found = live_.find(ended.token.value);
  const Live live = found->second;
  if (os::logging())
    os::log_event(run_.env, "ended",
                  {{"token", fmt::format("{}", ended.token.value)},
                   {"cause", json_quote(exec::describe(ended))},
                   {"detail", json_quote(ended.detail)}});
  settled_(workers_.find(live.worker), ended);
  watch_starts(ended);
  brief_.ended(ended.token, run_.env.now());
  const bool unbegun = live.ahead && ended.cause == exec::Cause::worker_lost;
  // An earlier runner was to stop, and this one resumes the task.
  const bool resumed = ended.cause == exec::Cause::stopped && run_.env.stop_signals() == 0;
  std::vector<schedule::Effect> effects;
  run_.scheduler->ended(ended.token,
                        no_start_ ? schedule::Verdict::stopped
                        : unbegun ? schedule::Verdict::given_back
                        : resumed ? schedule::Verdict::infrastructure_failure
                                  : verdict_of(ended),
                        run_.env.now(), effects);
  take_effects(ended, live.log_begin, effects);
  live_.erase(ended.token.value);
  std::erase_if(missing_, [&](const auto& each) { return each.first == ended.token; });
  if (live_.empty()) unbegun_.clear();
}

/// Of the end of one attempt: what it means for its own task now, the rest in its turn.
void Attempts::take_effects(const exec::Ended& ended, std::int64_t log_begin,
                            const std::vector<schedule::Effect>& effects) {
  for (const auto& effect : effects) {
    const auto* settled = std::get_if<schedule::TaskSettled>(&effect);
    if (settled == nullptr || settled->token != ended.token) {
      run_.effects.push_back(effect);
      continue;
    }
    const auto to = state_of(settled->to);
    exec::Ended told = ended;
    learn(told, to);
    recorder_.add_end(told, log_begin, to);
    if (const auto status = run_.workload->ended(run_.task(ended.task), ended.token, to); !status)
      run_.give_up(status.error());
  }
  recorder_.log().close(ended.token);
}

/// What the end means for what the next attempt of its task asks for, which is told with it.
void Attempts::learn(exec::Ended& ended, store::TaskState to) {
  if (!is_own_failure(ended.cause)) return;
  const ResourceRequest before = run_.request(ended.task);
  const std::int64_t mem = before.resources.get(Known::mem);
  if (to != store::TaskState::waiting) {
    if (to == store::TaskState::failed && ended.cause == exec::Cause::out_of_memory && mem > 0)
      ended.detail = fmt::format("ended out of memory at {}; raise its mem{}", written_bytes(mem),
                                 before.retries == 0 ? ", or give it retries" : "");
    return;
  }
  run_.histories[ended.task.value].add(ended.cause, before.resources);
  const ResourceRequest after = run_.request(ended.task);
  if (after.resources != before.resources)
    run_.scheduler->resize(ended.task, run_.scheduled(run_.task(ended.task)).resources);
  const auto growth = growth_text(ended, before, after, run_.history(ended.task).attempt());
  if (growth.empty()) return;
  const bool says_all = ended.detail.empty() || ended.cause == exec::Cause::out_of_memory;
  ended.detail = says_all ? growth : ended.detail + "; " + growth;
}

/// Where some task starts, a start that fails is that task's own matter, which the scheduler
/// bounds. Where none does the tasks are not to blame: they are left for a resume.
void Attempts::watch_starts(const exec::Ended& ended) {
  const bool failed = ended.cause == exec::Cause::short_of_means;
  const bool one_runs = std::ranges::any_of(live_, [&](const auto& each) {
    return each.first != ended.token.value && each.second.started;
  });
  if (!failed || one_runs) return no_start_since_.reset();
  if (!no_start_since_) no_start_since_ = run_.env.now();
  const Duration so_far = run_.env.now() - *no_start_since_;
  if (so_far < kNoStartMost || run_.scheduler->over()) return;
  no_start_ = Error{ErrorKind::impossible,
                    fmt::format("no task could be started for {}: {}: {}", format_duration(so_far),
                                exec::describe(ended), ended.detail)};
}

/// What is no success although its process ended well. false: that is not known yet.
bool Attempts::check_output(exec::Ended& ended, bool later) {
  if (auto why = run_.workload->cut_short(ended)) {
    ended.cause = exec::Cause::stopped_early;
    ended.detail = *std::move(why) + (ended.detail.empty() ? "" : "; " + ended.detail);
  }
  if (ended.cause != exec::Cause::ok) return true;
  std::vector<store::Change> changes;
  const auto done = run_.workload->finish(run_.task(ended.task), ended.token, changes, later);
  recorder_.add(std::move(changes));
  // A stop leaves it to a resume, where the journal of a dead agent keeps it.
  const bool keeps = run_.env.stop_signals() == 0 || !live_.contains(ended.token.value);
  if (!done && done.error().kind == ErrorKind::interrupted && keeps && !run_.error) {
    early_.push_back(ended);
    return false;
  }
  if (!done) spoil(ended, done.error());
  return !done || *done;
}

void Attempts::end_unstarted() {
  for (auto& ended : std::exchange(unstarted_, {})) end(std::move(ended), true);
}

void Attempts::lose(schedule::WorkerId worker, const std::string& because) {
  std::vector<exec::Ended> lost;
  for (const auto& [token, live] : live_)
    if (live.worker == worker)
      lost.push_back(exec::ended_as(exec::Cause::worker_lost, live.task, {token}, because));
  for (auto& ended : lost) {
    const TaskNumber number = ended.task;
    end(std::move(ended), false);
    run_.scheduler->settle_for(number, run_.effects);  // another job may be on the same machine
  }
}

void Attempts::cancel_all() {
  for (const auto& [token, live] : live_) workers_.send(live.worker, exec::Cancel{{token}});
}

void Attempts::end_from_journal(exec::Ended ended) {
  if (has_later(ended)) {
    early_.push_back(std::move(ended));
    return;
  }
  if (!check_output(ended, false)) return;
  const schedule::WorkerId ghost = workers_.next_id();
  std::vector<schedule::Effect> effects;
  run_.scheduler->joined(
      {.id = ghost, .resources = {}, .earlier = {{ended.task, ended.token, verdict_of(ended)}}},
      run_.env.now(), effects);
  run_.scheduler->left(ghost);
  take_effects(ended, 0, effects);
}

void Attempts::reconcile(const WorkerSlot& slot, std::span<const schedule::Earlier> known,
                         bool wanted) {
  for (const auto& each : known)
    if (!wanted || !live_.contains(each.token.value)) slot.worker->send(exec::Cancel{each.token});
  for (const auto& [token, live] : live_)
    if (live.worker == slot.id &&
        std::ranges::find(known, Token{token}, &schedule::Earlier::token) == known.end())
      unstarted_.push_back(exec::ended_as(exec::Cause::worker_lost, live.task, {token},
                                          slot.lease.alloc.machine + " does not know of it"));
}

bool Attempts::runs_on(Token token, schedule::WorkerId worker) const {
  const auto live = live_.find(token.value);
  return live != live_.end() && live->second.worker == worker;
}

std::vector<std::string> Attempts::labels_on(const std::function<bool(const WorkerSlot&)>& chosen) {
  std::vector<std::string> labels;
  for (const auto& [_, live] : live_)
    if (const WorkerSlot* slot = workers_.find(live.worker); slot != nullptr && chosen(*slot))
      labels.push_back(run_.name_of(live.task));
  std::ranges::sort(labels);
  return labels;
}

}  // namespace berth::run
