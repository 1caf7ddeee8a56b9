#include "berth/run/studies/study.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/experiment/constraint.h"
#include "berth/run/state/layout.h"

namespace berth::run {
namespace {

using store::TaskState;

bool was_lost(const store::AttemptRecord& attempt) {
  using enum exec::Cause;
  return attempt.cause == worker_lost || attempt.cause == superseded ||
         attempt.cause == runner_lost || attempt.cause == stopped;
}

std::string result_of_study(const store::Counts& counts, const store::TaskRecord* best,
                            std::optional<double> score) {
  JsonWriter json;
  json.object().add("done", counts.done).add("cached", 0).add("skipped", 0);
  json.add("failed", counts.failed);
  if (best != nullptr && score)
    json.key("best").object().add("task", best->label).add("value", *score).end();
  return json.end().take();
}

}  // namespace

Result<store::RunRecord> Study::submit(store::Store& store, os::Env& env,
                                       experiment::Program program, const std::string& directory) {
  if (program.search.method == experiment::Search::Method::external)
    return fail(ErrorKind::invalid,
                "search: a study proposes its trials itself; an external proposer takes a file "
                "with passive: true, and berth run");
  program.kind = kStudy;
  program.passive = true;
  store::NewRun run;
  run.name = program.name;
  run.kind = program.kind;
  run.spec_json = experiment::to_json_text(program);
  run.directory = directory;
  run.priority = program.priority;
  run.created = env.wall();
  return store.submit(run);
}

Result<Study> Study::open(store::Store& store, os::Env& env, const std::string& name,
                          const std::string& runs) {
  BERTH_ASSIGN(auto run, store.find_run(name));
  if (run.kind != kStudy)
    return fail(ErrorKind::usage, "{} is not a study: it is driven by berth run", run.name);
  BERTH_ASSIGN(auto program, experiment::from_json_text(run.spec_json));
  LeaseWatch watch(env, runs.empty() ? "" : leases_file(runs + "/" + run.name));
  Study study(store, env, std::move(run), std::move(program), std::move(watch));
  BERTH_TRY(study.reload());
  if (study.run_.state == store::RunState::stopped) {
    BERTH_TRY(
        store.apply(study.run_.id, {{store::RunMoved{store::RunState::running, env.wall(), ""}}}));
    study.run_.state = store::RunState::running;
  }
  return study;
}

Study::Study(store::Store& store, os::Env& env, store::RunRecord run, experiment::Program program,
             LeaseWatch watch)
    : store_(store),
      env_(env),
      run_(std::move(run)),
      program_(std::move(program)),
      watch_(std::move(watch)) {
  begin_search();
}

Status Study::reload() {
  trials_.clear();
  numbers_.clear();
  open_.clear();
  begin_search();
  BERTH_ASSIGN(auto news, store_.news(run_.id, {}, {0}));
  run_ = std::move(news.run);
  last_token_ = news.last_token;
  for (auto& trial : news.tasks) take(std::move(trial));
  return {};
}

Status Study::refresh() {
  const std::vector<TaskNumber> open(open_.begin(), open_.end());
  BERTH_ASSIGN(auto news, store_.news(run_.id, open, {std::ssize(trials_)}));
  const auto is_new = [&](const auto& value) {
    return std::ranges::find(program_.params, value.first, &experiment::Parameter::name) ==
           program_.params.end();
  };
  const bool grown = std::ranges::any_of(
      news.tasks, [&](const auto& trial) { return std::ranges::any_of(trial.params, is_new); });
  run_ = std::move(news.run);
  last_token_ = news.last_token;
  for (auto& trial : news.tasks) take(std::move(trial));
  const store::Counts& counts = run_.counts;
  if (counts.waiting + counts.running + counts.stopped != std::ssize(open_))
    return reload();  // what had ended was made to wait again
  if (grown && may_grow()) BERTH_TRY(reread_program());
  return {};
}

void Study::take(store::TaskRecord trial) {
  const TaskNumber number = trial.number;
  const auto at = static_cast<std::size_t>(number.value - 1);
  const bool is_new = at == trials_.size();
  if (store::final(trial.state))
    open_.erase(number);
  else
    open_.insert(number);
  if (trial.state == TaskState::running)
    watch_.see(trial);
  else
    watch_.forget(number);
  const bool told = !is_new && trials_[at].state == trial.state && !store::final(trial.state);
  if (is_new) {
    numbers_.emplace(trial.label, number);
    trials_.push_back(std::move(trial));
  } else {
    // What was suggested is recorded with the end.
    if (mine(trial) && suggested_.contains(number)) trial.params = std::move(trials_[at].params);
    trials_[at] = std::move(trial);
  }
  unfed_.insert(number);
  if (!told) tell_proposer(trials_[at]);
}

bool Study::mine(const store::TaskRecord& trial) const {
  const auto claim = claims_.find(trial.number);
  return claim != claims_.end() && claim->second == trial.token;
}

bool Study::ran_out(const store::TaskRecord& trial) {
  return trial.lease && !mine(trial) && watch_.unchanged(trial.number) >= program_.lease;
}

bool Study::overdue(const store::TaskRecord& trial) {
  return program_.timeout > Duration(0) && trial.state == TaskState::running &&
         watch_.age(trial.number) >= program_.timeout;
}

/// The next value of a lease. Earlier versions of Berth compare it with their wall clock, so it is
/// the time of its end where that is higher.
std::int64_t Study::next_lease(std::int64_t before) const {
  return std::max(before + 1, (env_.wall() + program_.lease).time_since_epoch().count());
}

std::optional<std::string> Study::closed() const {
  if (run_.state == store::RunState::stopped) return "it was stopped";
  if (run_.state == store::RunState::failed && program_.stop_on_failure) return "a trial failed";
  return std::nullopt;
}

Result<Study::Asked> Study::ask() {
  for (;;) {
    BERTH_TRY(refresh());
    watch_.exchange();
    BERTH_ASSIGN(const Pick pick, this->pick());
    if (pick.none) {
      if (!std::holds_alternative<Over>(*pick.none)) return *pick.none;
      // Another process may have asked for more.
      BERTH_ASSIGN(const bool more, reread_program());
      if (more) continue;
      BERTH_TRY(settle());
      return *pick.none;
    }
    const TaskNumber number = pick.trial.value_or(TaskNumber{std::ssize(trials_) + 1});
    BERTH_ASSIGN(const bool claimed, claim(pick));
    if (claimed) return number;
  }
}

/// What whoever asks now may have. Trials that nobody can finish are ended on the way.
Result<Study::Pick> Study::pick() {
  Pick pick;
  if (auto why = closed()) {
    pick.none = Over{*std::move(why)};
    return pick;
  }
  std::int64_t out = 0;
  std::vector<std::string> own;
  for (const TaskNumber number : std::vector(open_.begin(), open_.end())) {
    BERTH_ASSIGN(const bool ended, end_hopeless(trial(number)));
    if (ended) continue;
    const store::TaskRecord& one = trial(number);
    if (one.state == TaskState::running && !ran_out(one)) {
      ++out;
      if (mine(one)) own.push_back(one.label);
    } else if (!pick.trial) {
      pick.trial = number;
    }
  }
  if (std::ssize(own) < out) own.clear();
  if (program_.parallel > 0 && out >= program_.parallel) {
    pick.none = Later{fmt::format("{} are running, the maximum that parallel allows", out), own};
    return pick;
  }
  if (pick.trial) return pick;
  pick.added = proposal();
  if (pick.added) return pick;
  if (out > 0)
    pick.none =
        Later{fmt::format("{} are running; the next trial depends on their results", out), own};
  else
    pick.none = Over{"all of its trials have ended"};
  return pick;
}

/// Ends a trial that took longer than it may, or was lost again and again.
Result<bool> Study::end_hopeless(const store::TaskRecord& trial) {
  const bool late = overdue(trial);
  const bool free = trial.state != TaskState::running || ran_out(trial);
  if (!late && (!free || trial.attempts < kMostLost)) return false;
  std::vector<store::Change> changes;
  if (late) {
    BERTH_ASSIGN(auto ended, change_of(trial, trial.token, {.kind = TrialEnd::Kind::failed}));
    ended.cause = exec::Cause::time_limit;
    ended.exit_code.reset();
    ended.detail = "its score was not reported in time";
    changes.emplace_back(ended);
  } else {
    BERTH_ASSIGN(const auto attempts, store_.attempts(run_.id, trial.number));
    if (std::ranges::count_if(attempts, was_lost) + (attempts.back().ended ? 0 : 1) < kMostLost)
      return false;
    if (trial.state == TaskState::running)
      changes.emplace_back(
          store::AttemptEnded{.task = trial.number,
                              .token = trial.token,
                              .at = env_.wall(),
                              .next = TaskState::failed,
                              .cause = exec::Cause::worker_lost,
                              .exit_code = {},
                              .detail = "the process that ran it was lost repeatedly"});
    else
      changes.emplace_back(store::TaskMoved{trial.number, TaskState::failed});
  }
  BERTH_TRY(store_.apply(run_.id, changes));
  BERTH_TRY(refresh());
  return true;
}

/// False: another was faster.
Result<bool> Study::claim(const Pick& pick) {
  std::vector<store::Change> changes;
  const Wall now = env_.wall();
  store::TaskRecord trial;
  if (pick.trial) {
    trial = this->trial(*pick.trial);
  } else {
    trial.number = {std::ssize(trials_) + 1};
    trial.label = pick.added->label;
    trial.params = pick.added->params;
    changes.emplace_back(store::TasksAdded{{{trial.label, trial.params}}});
  }
  if (run_.state != store::RunState::running)
    changes.emplace_back(store::RunMoved{store::RunState::running, now, ""});
  const Token token{last_token_.value + 1};
  store::AttemptStarted started{trial.number, token, now, "{}", env_.host_name(), ""};
  started.lease = next_lease(0);
  changes.emplace_back(started);
  const auto applied = store_.apply(run_.id, changes);
  if (!applied &&
      (applied.error().kind == ErrorKind::stale || applied.error().kind == ErrorKind::exists))
    return false;
  if (!applied) return std::unexpected(applied.error());
  last_token_ = token;
  run_.state = store::RunState::running;
  if (claims_.empty()) renewed_ = env_.now();
  claims_[trial.number] = token;
  suggested_.erase(trial.number);
  missing_.erase(trial.number);
  trial.state = TaskState::running;
  trial.attempts += 1;
  trial.token = token;
  trial.started = now;
  trial.ended.reset();
  trial.host = started.host;
  trial.resources = started.resources;
  trial.lease = started.lease;
  take(std::move(trial));
  watch_.exchange();
  return true;
}

Result<TaskNumber> Study::find(const std::string& label) {
  for (const bool heard : {false, true}) {
    if (const auto found = numbers_.find(label); found != numbers_.end()) return found->second;
    if (!heard) BERTH_TRY(refresh());
  }
  return fail(ErrorKind::not_found, "{} has no trial '{}'", run_.name, clip(label));
}

Result<bool> Study::has_retries(const store::TaskRecord& trial) {
  if (program_.retries == 0) return false;
  BERTH_ASSIGN(const auto attempts, store_.attempts(run_.id, trial.number));
  const auto failed = std::ranges::count_if(attempts, [&](const auto& one) {
    const bool returned = one.cause == exec::Cause::given_back;
    return one.ended && !was_lost(one) && !returned && one.token > trial.forgiven;
  });
  return failed < program_.retries;
}

/// Records that nothing is left to do, where that is so.
Status Study::settle() {
  if (!open_.empty() || trials_.empty() || closed() || proposal()) return {};
  const store::Counts& counts = run_.counts;
  const bool failed = counts.failed > program_.allow_failures;
  const auto to = failed ? store::RunState::failed : store::RunState::done;
  if (run_.state == to) return {};
  const auto* best = this->best();
  const auto score =
      best == nullptr ? std::nullopt : experiment::score(*program_.goal, best->metrics);
  store::RunMoved moved{to, env_.wall(),
                        failed ? fmt::format("{} of {} failed", counts.failed, counts.total()) : "",
                        result_of_study(counts, best, score)};
  BERTH_TRY(store_.apply(run_.id, {{moved}}));
  run_.state = to;
  return {};
}

std::optional<Mono> Study::renew_at() const {
  if (claims_.empty()) return std::nullopt;
  return renewed_ + program_.lease / 3;
}

Status Study::renew() {
  std::vector<store::Change> changes;
  for (const auto& [number, token] : claims_) {
    auto& trial = trials_[static_cast<std::size_t>(number.value - 1)];
    if (!mine(trial)) continue;  // another process has it now
    trial.lease = next_lease(trial.lease.value_or(0));
    changes.emplace_back(store::AttemptKept{number, token, *trial.lease});
  }
  renewed_ = env_.now();
  if (changes.empty()) return {};
  BERTH_TRY(store_.apply(run_.id, changes));
  for (const auto& [number, token] : claims_)
    if (mine(trial(number))) watch_.see(trial(number));
  watch_.exchange();
  return {};
}

Status Study::give_back() {
  std::vector<store::Change> changes;
  for (const auto& [number, token] : std::exchange(claims_, {}))
    changes.emplace_back(store::AttemptEnded{.task = number,
                                             .token = token,
                                             .at = env_.wall(),
                                             .next = TaskState::waiting,
                                             .cause = exec::Cause::worker_lost,
                                             .exit_code = {},
                                             .detail = "the process that ran it has ended"});
  if (!changes.empty()) BERTH_TRY(store_.apply(run_.id, changes));
  return {};
}

const store::TaskRecord* Study::best() const {
  const store::TaskRecord* best = nullptr;
  experiment::Scored best_score;
  for (const auto& one : trials_) {
    if (one.state != TaskState::done || !program_.goal) continue;
    const auto score =
        experiment::feasible_score(*program_.goal, program_.constraints, one.metrics);
    if (!score) continue;
    const experiment::Scored scored{*score, one.number.value};
    if (best != nullptr && !experiment::is_better(*program_.goal, scored, best_score)) continue;
    best_score = scored;
    best = &one;
  }
  return best;
}

}  // namespace berth::run
