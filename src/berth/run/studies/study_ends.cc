// What is recorded of a trial of a Study: its reports, its end, and its release.
#include <algorithm>
#include <cmath>

#include "berth/base/text.h"
#include "berth/exec/metrics.h"
#include "berth/run/studies/study.h"

namespace berth::run {
namespace {

using store::TaskState;

std::unexpected<Error> not_latest(const store::RunRecord& run, const std::string& label) {
  return fail(ErrorKind::stale,
              "{}/{}: this claim is over: its lease had run out, and the trial was given to "
              "another worker or its result reported",
              run.name, clip(label));
}

std::unexpected<Error> has_ended(const store::RunRecord& run, const store::TaskRecord& trial) {
  return fail(ErrorKind::invalid, "{}/{} has ended already: {}", run.name, trial.label,
              store::name(trial.state));
}

}  // namespace

/// The token under which the trial is told about; it is claimed where nobody holds it.
Result<Token> Study::token_of(const store::TaskRecord& trial, std::optional<Token> token,
                              std::vector<store::Change>& changes) {
  if (token) return *token;
  if (const auto claim = claims_.find(trial.number); claim != claims_.end()) return claim->second;
  if (store::final(trial.state)) return has_ended(run_, trial);
  if (trial.state == TaskState::running) return trial.token;
  const Token next{last_token_.value + 1};
  changes.emplace_back(
      store::AttemptStarted{trial.number, next, env_.wall(), "{}", env_.host_name(), ""});
  return next;
}

Status Study::check(const TrialEnd& end) const {
  if (end.kind != TrialEnd::Kind::done) return {};
  const auto look = [&](std::string_view what, const std::string& metric) -> Status {
    if (std::ranges::find(end.metrics, metric, &store::Numbers::value_type::first) !=
        end.metrics.end())
      return {};
    return fail(ErrorKind::invalid, "the {} '{}' is missing", what, metric);
  };
  if (program_.goal) BERTH_TRY(look("goal", program_.goal->metric));
  for (const auto& goal : program_.further_goals) BERTH_TRY(look("goal", goal.metric));
  for (const auto& each : program_.constraints) BERTH_TRY(look("constrained metric", each.metric));
  return {};
}

void Study::note_missing(TaskNumber number, const store::Numbers& metrics) {
  for (const auto& [name, value] : metrics)
    if (!std::isfinite(value))
      missing_.try_emplace(number, exec::missing_note(name, exec::non_finite_text(value)));
}

/// The end with what the user should know about its metrics. A trial without a finite value of its
/// goal has failed.
TrialEnd Study::with_notes(TaskNumber number, TrialEnd end) {
  const auto fails = [&](const std::string& metric) {
    const auto value = std::ranges::find(end.metrics, metric, &store::Numbers::value_type::first);
    if (end.kind != TrialEnd::Kind::done || value == end.metrics.end()) return;
    if (std::isfinite(value->second)) return;
    end.kind = TrialEnd::Kind::failed;
    end.reason = fmt::format("the last {} that it reported was not a finite number", metric);
  };
  if (program_.goal) fails(program_.goal->metric);
  for (const auto& goal : program_.further_goals) fails(goal.metric);
  for (const auto& each : program_.constraints) fails(each.metric);
  note_missing(number, end.metrics);
  if (const auto fed = fed_.find(number);
      end.kind == TrialEnd::Kind::pruned && end.reason.empty() && fed != fed_.end())
    end.reason = fed->second.because.value_or("");
  if (const auto note = missing_.find(number); note != missing_.end())
    end.reason += (end.reason.empty() ? "" : "; ") + note->second;
  return end;
}

void Study::add_metrics(const store::TaskRecord& trial, Token token, const store::Numbers& metrics,
                        std::vector<store::Change>& changes) const {
  const Wall now = env_.wall();
  for (const auto& [name, value] : metrics) {
    changes.emplace_back(
        store::MetricSeen{trial.number, token, name, store::recorded_value(value), now});
    if (!std::isfinite(value) || !program_.goal || name != program_.goal->metric) continue;
    if (const auto best = experiment::better_score(*program_.goal, trial.metrics, value))
      changes.emplace_back(store::MetricSeen{trial.number, token,
                                             experiment::score_name(*program_.goal), *best, now});
  }
}

Result<store::AttemptEnded> Study::change_of(const store::TaskRecord& trial, Token token,
                                             const TrialEnd& end) {
  store::AttemptEnded ended{.task = trial.number,
                            .token = token,
                            .at = env_.wall(),
                            .exit_code = {},
                            .detail = end.reason};
  if (end.kind == TrialEnd::Kind::done) ended.exit_code = 0;
  if (end.kind == TrialEnd::Kind::pruned) ended.cause = exec::Cause::stopped_early;
  if (end.kind != TrialEnd::Kind::failed) return ended;
  BERTH_ASSIGN(const bool again, has_retries(trial));
  ended.next = again ? TaskState::waiting : TaskState::failed;
  ended.cause = exec::Cause::exit_code;
  ended.exit_code = 1;
  return ended;
}

Status Study::tell(const std::string& label, std::optional<Token> token, const TrialEnd& told) {
  BERTH_TRY(check(told));
  BERTH_ASSIGN(const TaskNumber number, find(label));
  const TrialEnd end = with_notes(number, told);
  if (!token && !claims_.contains(number)) BERTH_TRY(refresh());
  std::vector<store::Change> changes;
  BERTH_ASSIGN(const Token of, token_of(trial(number), token, changes));
  forget_unsuggested(trial(number), of, changes);
  add_metrics(trial(number), of, end.metrics, changes);
  BERTH_ASSIGN(const auto ended, change_of(trial(number), of, end));
  changes.emplace_back(ended);
  if (ended.next == TaskState::failed && program_.stop_on_failure &&
      run_.counts.failed >= program_.allow_failures)
    changes.emplace_back(store::RunMoved{store::RunState::failed, env_.wall(),
                                         fmt::format("trial {} failed", trial(number).label)});
  BERTH_ASSIGN(const auto applied, store_.apply(run_.id, changes));
  if (const auto claim = claims_.find(number); claim != claims_.end() && claim->second == of)
    claims_.erase(claim);
  missing_.erase(number);
  BERTH_TRY(refresh());
  if (applied.refused > 0) return not_latest(run_, label);
  return settle();
}

Status Study::release(const std::string& label, std::optional<Token> token) {
  BERTH_ASSIGN(const TaskNumber number, find(label));
  const auto claim = claims_.find(number);
  if (claim == claims_.end() || (token && claim->second != *token)) return not_latest(run_, label);
  BERTH_TRY(store_.apply(run_.id, {{store::AttemptEnded{.task = number,
                                                        .token = claim->second,
                                                        .at = env_.wall(),
                                                        .next = TaskState::waiting,
                                                        .cause = exec::Cause::given_back,
                                                        .exit_code = {},
                                                        .detail = "the process released it"}}}));
  claims_.erase(claim);
  suggested_.erase(number);
  return refresh();
}

Result<std::optional<std::string>> Study::report(const std::string& label,
                                                 std::optional<Token> token,
                                                 const store::Numbers& metrics) {
  BERTH_ASSIGN(const TaskNumber number, find(label));
  if (!token && !claims_.contains(number)) BERTH_TRY(refresh());
  std::vector<store::Change> changes;
  BERTH_ASSIGN(const Token of, token_of(trial(number), token, changes));
  add_metrics(trial(number), of, metrics, changes);
  BERTH_TRY(store_.apply(run_.id, changes));
  BERTH_TRY(refresh());
  if (trial(number).token != of || trial(number).state != TaskState::running)
    return not_latest(run_, label);
  note_missing(number, metrics);
  BERTH_TRY(feed_stopper());
  const auto fed = fed_.find(number);
  return fed == fed_.end() ? std::nullopt : fed->second.because;
}

}  // namespace berth::run
