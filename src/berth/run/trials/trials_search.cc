// Which trials there are, and what follows from what they report.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "berth/base/text.h"
#include "berth/experiment/constraint.h"
#include "berth/experiment/own_point.h"
#include "berth/experiment/proposers/external.h"
#include "berth/experiment/proposers/population.h"
#include "berth/experiment/proposers/space.h"
#include "berth/run/trials/trials.h"

namespace berth::run {
namespace {

/// How long after a report that is a reason to end a trial the trial is judged, by all its reports:
/// a program that keeps its output in a buffer writes all of it when it ends, and then needs time
/// to exit with its own code.
constexpr Duration kSettles = std::chrono::milliseconds(100);

}  // namespace

void Trials::stand(TaskNumber task, Stand to) {
  const auto at = static_cast<std::size_t>(task.value - 1);
  const auto count = [&](std::int64_t change) {
    if (stands_[at] == Stand::waiting) waiting_ += change;
    if (stands_[at] == Stand::running) running_ += change;
  };
  if (at < stands_.size())
    count(-1);
  else
    stands_.resize(at + 1);
  stands_[at] = to;
  count(1);
}

Status Trials::take_over(std::span<const store::TaskRecord> tasks) {
  BERTH_TRY(enqueued_.take_over(std::ssize(tasks)));
  tell_earlier();
  for (const auto& task : tasks) {
    const bool runs = task.state == store::TaskState::running;
    stand(task.number, store::final(task.state) ? Stand::over
                       : runs                   ? Stand::running
                                                : Stand::waiting);
    tell(task);
    count_level(task.label);
    consider_best(task);
    if (stopper_) BERTH_TRY(recall_reports(task));
  }
  if (proposer_) proposer_->take_notes();  // an earlier runner has shown them
  BERTH_TRY(drop_unrecorded(tasks));
  exhausted_ = !adaptive(program_.search);
  complete_ = exhausted_ && !program_.save_best;
  return {};
}

/// What it has reported to earlier runners.
Status Trials::recall_reports(const store::TaskRecord& task) {
  const bool runs = task.state == store::TaskState::running;
  if (!runs && task.state != store::TaskState::done) return {};
  BERTH_ASSIGN(const auto metrics, context_.store->metrics(record_.id, task.number));
  stopper_->begin(task.number.value);
  std::optional<std::string> because;
  for (const auto& metric : metrics)
    if (metric.token == task.token && metric.name == program_.goal->metric)
      if (auto reason = stopper_->report(task.number.value, metric.value); reason && !because)
        because = std::move(reason);
  const bool whole = task.cause == exec::Cause::ok;
  if (!runs)
    stopper_->end(task.number.value, whole ? experiment::EarlyStopper::End::completed
                                           : experiment::EarlyStopper::End::stopped_early);
  else if (because)
    cut_.emplace(task.token.value, Cut{task.number, *std::move(because)});
  return {};
}

/// Another proposer than one of a process of its own was made with them.
void Trials::tell_earlier() {
  if (!external_) return;
  external_->send_line(experiment::hello_line(program_, record_.name));
  for (const auto& [params, metrics, run] : program_.earlier)
    external_->send_line(experiment::tell_line("", params, experiment::TrialReport::State::done,
                                               metrics, program_.types));
}

void Trials::tell(const store::TaskRecord& task) {
  if (task.label == experiment::kBestAgain) return;
  using State = experiment::TrialReport::State;
  const State state = task.state == store::TaskState::failed ? State::failed
                      : task.state == store::TaskState::done ? State::done
                                                             : State::open;
  if (external_)
    external_->send_line(
        experiment::tell_line(task.label, task.params, state, task.metrics, program_.types));
  if (proposer_)
    proposer_->tell(experiment::report_of(program_, task.number.value, {task.label, task.params},
                                          state, task.metrics));
}

void Trials::consider_best(const store::TaskRecord& task) {
  if (task.label == experiment::kBestAgain) {
    best_again_ = true;
    return;
  }
  if ((!program_.save_best && !copies_) || task.state != store::TaskState::done) return;
  if (experiment::scores_of(program_, task.metrics).empty()) return;  // a goal was not reported
  const auto score = experiment::feasible_score(*program_.goal, program_.constraints, task.metrics);
  if (!score) return;
  const experiment::Scored scored{*score, task.number.value};
  if (best_ && !experiment::is_better(*program_.goal, scored, best_->scored)) return;
  best_ = Best{scored, task.label, task.params};
}

void Trials::add(experiment::Proposal proposal, Next& next) {
  const TaskNumber number{static_cast<std::int64_t>(stands_.size()) + 1};
  stand(number, Stand::waiting);
  if (proposer_) proposer_->tell({.number = number.value, .trial = proposal});
  next.added.push_back({std::move(proposal.label), std::move(proposal.params)});
}

/// One trial ahead of what has found a place, so that each is proposed with all that is known.
Result<Next> Trials::next() {
  Next next;
  if (proposer_) next.notes = proposer_->take_notes();
  if (complete_) return next;
  const bool full = program_.parallel > 0 && waiting_ + running_ >= program_.parallel;
  if (waiting_ > 0 || full) return next;
  if (adaptive(program_.search)) BERTH_TRY(add_enqueued(next));
  if (!next.added.empty()) return next;
  if (external_ && !exhausted_) {
    BERTH_TRY(ask_external(next));
  } else if (!exhausted_) {
    BERTH_TRY(add_proposed(next));
  }
  if (exhausted_ && running_ == 0 && next.added.empty()) BERTH_TRY(last_of_all(next));
  return next;
}

Status Trials::add_proposed(Next& next) {
  auto proposal = proposer_->ask();
  if (!proposal) {
    exhausted_ = running_ == 0;
    return {};
  }
  const auto* parent = experiment::find_value(proposal->params, experiment::kParent);
  BERTH_ASSIGN(const bool ready, has_checkpoint(proposal->label, parent ? *parent : ""));
  if (!ready) return {};
  const std::string label = proposal->label;
  add(*std::move(proposal), next);
  count_level(label);
  return {};
}

/// Whether the trial can begin where its parent ended; where not, the copy has been begun.
Result<bool> Trials::has_checkpoint(const std::string& label, const std::string& parent) {
  if (!copies_ || parent.empty()) return true;
  BERTH_TRY(env_.make_directory(directory_ + "/checkpoints", 0700));
  return copies_->there(checkpoint(parent), checkpoint(label));
}

void Trials::count_level(const std::string& label) {
  if (!copies_) return;
  const auto member = experiment::member_of(*program_.search.budget, label);
  if (!member) return;
  if (begun_.size() <= member->level) begun_.resize(member->level + 1);
  if (++begun_[member->level] == program_.search.samples) forgets_ = true;
}

/// A copy for a trial that was not recorded: scores that were not either may come out otherwise,
/// and then it goes on from another one.
Status Trials::drop_unrecorded(std::span<const store::TaskRecord> tasks) {
  const std::string directory = directory_ + "/checkpoints";
  if (!copies_) return {};
  std::set<std::string, std::less<>> recorded;
  for (const auto& task : tasks) recorded.insert(task.label);
  const auto found = env_.entries(directory);
  if (!found && found.error().kind == ErrorKind::not_found) return {};
  if (!found) return std::unexpected(found.error());
  for (const auto& entry : *found)
    if (!recorded.contains(entry.path)) BERTH_TRY(env_.remove_tree(directory + "/" + entry.path));
  return {};
}

/// Those that nothing will go on from any more, for the next part was begun by all. That of the
/// best trial stays, and those of the last part.
void Trials::forget_checkpoints() {
  if (!std::exchange(forgets_, false)) return;
  const auto found = env_.entries(directory_ + "/checkpoints");
  if (!found) return;  // none was made yet
  for (const auto& [name, kind, size, executable, mode, target] : *found) {
    const auto member = experiment::member_of(*program_.search.budget, name);
    if (!member || (best_ && best_->label == name)) continue;
    const std::size_t next = member->level + 1;
    if (next < begun_.size() && begun_[next] == program_.search.samples)
      copies_->remove(checkpoint(name));
  }
}

void Trials::committed() {
  enqueued_.forget_taken();
  forget_checkpoints();
}

bool Trials::take_news() {
  const bool copied = copies_ && copies_->take_news();
  return (external_ && external_->take_news()) || copied;
}

std::vector<Finished> Trials::turn() {
  if (copies_) copies_->turn();
  return {};
}

bool Trials::busy() const {
  return (external_ && external_->asked()) || (copies_ && copies_->busy());
}

std::optional<Underway> Trials::reading() const {
  return copies_ ? copies_->oldest() : std::nullopt;
}

/// A point that somebody has added goes before what would be proposed, which completes it.
Status Trials::add_enqueued(Next& next) {
  if (external_ && external_->asked()) return {};  // for the trial of this number
  const TaskNumber number{static_cast<std::int64_t>(stands_.size()) + 1};
  BERTH_ASSIGN(const auto given, enqueued_.take(number));
  if (!given) return {};
  const bool lacks = proposer_ && given->size() < program_.params.size();
  const auto proposal = lacks ? proposer_->ask() : std::nullopt;
  Rng rng(mix(program_.search.seed) ^ mix(static_cast<std::uint64_t>(number.value)));
  add({fmt::format("{}", number.value),
       experiment::completed(program_.params, *given,
                             proposal ? proposal->params : experiment::Values{}, rng)},
      next);
  return {};
}

Status Trials::ask_external(Next& next) {
  const auto trial = static_cast<std::int64_t>(stands_.size()) + 1;
  if (trial > program_.search.samples) {
    exhausted_ = true;
    return {};
  }
  if (waiting_for_ends_) return {};
  const std::string label = fmt::format("{}", trial);
  if (!external_->asked()) external_->ask(experiment::ask_line(label));
  BERTH_ASSIGN(const auto line, external_->answer());
  if (!line) return {};
  BERTH_ASSIGN(auto answer, experiment::read_answer(program_, *line));
  switch (answer.kind) {
    case experiment::Answer::Kind::params: add({label, std::move(answer.params)}, next); break;
    case experiment::Answer::Kind::done: exhausted_ = true; break;
    case experiment::Answer::Kind::wait:
      if (running_ == 0)
        return fail(ErrorKind::invalid, "the proposer waits, but no trial is running");
      waiting_for_ends_ = true;
  }
  return {};
}

/// Nothing is left to try: the best once more, if that is wanted.
Status Trials::last_of_all(Next& next) {
  if (program_.save_best && best_ && !best_again_) {
    const std::string label(experiment::kBestAgain);
    BERTH_ASSIGN(const bool ready, has_checkpoint(label, best_->label));
    if (!ready) return {};
    best_again_ = true;
    experiment::Values params = best_->params;
    if (copies_) {
      std::erase_if(params, [](const auto& value) { return value.first == experiment::kParent; });
      params.emplace_back(experiment::kParent, best_->label);
    }
    add({label, std::move(params)}, next);
    return {};
  }
  complete_ = true;
  return {};
}

void Trials::started(TaskNumber task) {
  stand(task, Stand::running);
  if (stopper_) stopper_->begin(task.value);
}

bool Trials::on_metric(const store::TaskRecord& task, const exec::Metric& metric) {
  const auto cut = cut_.find(metric.token.value);
  if (cut != cut_.end() && metric.asked_to_end) return false;
  if (std::isfinite(metric.value))
    not_finite_.erase({metric.token, metric.name});
  else
    not_finite_.emplace(metric.token, metric.name);
  if (!stopper_) return true;
  std::optional<std::string> because;
  if (metric.name == program_.goal->metric && std::isfinite(metric.value))
    because = stopper_->report(task.number.value, metric.value);
  if (cut == cut_.end() && !because) return true;
  if (cut == cut_.end())
    cut_.emplace(metric.token.value, Cut{task.number, *std::move(because)});
  else if (cut->second.asked)
    return true;
  judged_at_.try_emplace(metric.token, env_.now() + kSettles);
  return true;
}

std::optional<Mono> Trials::hopeless_at() const {
  std::optional<Mono> first;
  for (const auto& [token, at] : judged_at_) first = std::min(at, first.value_or(at));
  return first;
}

std::vector<Token> Trials::take_hopeless() {
  std::vector<Token> hopeless;
  for (auto at = judged_at_.begin(); at != judged_at_.end();) {
    const auto [token, due] = *at;
    if (due > env_.now()) {
      ++at;
      continue;
    }
    at = judged_at_.erase(at);
    const auto cut = cut_.find(token.value);
    if (cut == cut_.end()) continue;
    if (stopper_->has_recovered(cut->second.task.value)) {
      cut_.erase(cut);
      continue;
    }
    cut->second.asked = true;
    hopeless.push_back(token);
  }
  return hopeless;
}

std::optional<std::string> Trials::cut_short(const exec::Ended& ended) {
  const auto cut = cut_.find(ended.token.value);
  if (cut == cut_.end()) return std::nullopt;
  const bool lost = cut->second.asked && ended.cause == exec::Cause::worker_lost;
  if (lost || ended.asked_to_end || ended.cause == exec::Cause::stopped) return cut->second.because;
  cut_.erase(cut);
  return std::nullopt;
}

Result<bool> Trials::finish(const store::TaskRecord& task, Token token, std::vector<store::Change>&,
                            bool) {
  if (!program_.goal) return true;
  std::vector<std::string> missing;
  const auto look = [&](const experiment::Goal& goal) {
    if (!experiment::score(goal, task.metrics)) missing.push_back(goal.metric);
  };
  look(*program_.goal);
  for (const auto& goal : program_.further_goals) look(goal);
  for (const auto& constraint : program_.constraints)
    if (!experiment::excess(constraint, task.metrics)) missing.push_back(constraint.metric);
  if (missing.empty()) return true;
  for (const auto& metric : missing)
    if (not_finite_.contains({token, metric}))
      return fail(ErrorKind::invalid, "the last {} that it reported was not a finite number",
                  metric);
  std::vector<std::string> reported;
  for (const auto& [name, value] : task.metrics) reported.push_back(name);
  std::string text =
      fmt::format("it never reported {}, which its {}", join(missing, " and "),
                  program_.constraints.empty() ? "goal requires" : "goal and constraints require");
  text += reported.empty() ? "; it reported no metrics"
                           : "; it reported " + clip(join(reported, ", "), 200);
  if (reported.empty() && (names(kCheckpoint) || program_.checkpoints))
    text +=
        ", although an earlier attempt may have left a checkpoint: a script that continues from it "
        "must report again";
  return fail(ErrorKind::invalid, "{}", text);
}

Status Trials::ended(const store::TaskRecord& task, Token token, store::TaskState to) {
  const bool again = to == store::TaskState::waiting || to == store::TaskState::stopped;
  stand(task.number, again ? Stand::waiting : Stand::over);
  std::erase_if(not_finite_, [&](const auto& each) { return each.first == token; });
  judged_at_.erase(token);
  if (stopper_) {
    using End = experiment::EarlyStopper::End;
    const bool cut = cut_.erase(token.value) > 0;
    const bool done = to == store::TaskState::done;
    stopper_->end(task.number.value, cut    ? End::stopped_early
                                     : done ? End::completed
                                            : End::failed);
  }
  if (!again) {
    tell(task);
    consider_best(task);
    waiting_for_ends_ = false;
  }
  return {};
}

}  // namespace berth::run
