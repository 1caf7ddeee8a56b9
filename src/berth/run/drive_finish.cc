// From the end of a process to the end of its attempt: what it wrote comes to its places first,
// beside the loop where that takes long.
#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/os/log.h"
#include "berth/run/drive.h"

namespace berth::run {

/// `later`: what follows from it may be done beside the loop.
void Drive::on_ended(exec::Ended ended, bool later) {
  if (!live_.contains(ended.token.value)) return;
  finishing_.erase(ended.token.value);
  if (check_output(ended, later)) return on_settled(ended);
  finishing_.emplace(ended.token.value, std::move(ended));
}

void Drive::on_finished(Finished finished) {
  auto node = finishing_.extract(finished.token.value);
  if (!node) return;  // its worker was lost meanwhile
  if (!finished.note.empty()) observer_.on_note(finished.note);
  std::ranges::move(finished.changes, std::back_inserter(batch_));
  if (!finished.status) spoil(node.mapped(), finished.status.error());
  on_settled(node.mapped());
}

void Drive::on_settled(const exec::Ended& ended) {
  const auto live = live_.find(ended.token.value);
  if (os::logging())
    os::log_event(env_, "ended",
                  {{"token", fmt::format("{}", ended.token.value)},
                   {"cause", json_quote(exec::describe(ended))},
                   {"detail", json_quote(ended.detail)}});
  // One alloc each time that others were seen to wait: the next look tells whether it was enough.
  const auto on = std::ranges::find(berthed_, live->second.worker, [](auto& b) { return b->id; });
  if (on != berthed_.end() && ended.cause == exec::Cause::ok) leasings_[(*on)->source].losses = 0;
  if (on != berthed_.end() && (*on)->source == 0 && std::exchange(others_wait_, false))
    scheduler_->close(live->second.worker);
  watch_starts(ended);
  brief_.ended(ended.token, env_.now());
  const bool unbegun = live->second.ahead && ended.cause == exec::Cause::worker_lost;
  std::vector<schedule::Effect> effects;
  scheduler_->ended(ended.token,
                    no_start_ ? schedule::Verdict::stopped
                    : unbegun ? schedule::Verdict::given_back
                              : verdict_of(ended),
                    env_.now(), effects);
  take_effects(ended, live->second, effects);
  live_.erase(live);
  if (live_.empty()) unbegun_.clear();
}

/// Where some task starts, a start that fails is that task's own matter, which the scheduler
/// bounds. Where none does the tasks are not to blame: they are left for a resume.
void Drive::watch_starts(const exec::Ended& ended) {
  const bool failed = ended.cause == exec::Cause::short_of_means;
  const bool one_runs = std::ranges::any_of(live_, [&](const auto& each) {
    return each.first != ended.token.value && each.second.started;
  });
  if (!failed || one_runs) return no_start_since_.reset();
  if (!no_start_since_) no_start_since_ = env_.now();
  const Duration so_far = env_.now() - *no_start_since_;
  if (so_far < kNoStartMost || scheduler_->over()) return;
  no_start_ = Error{ErrorKind::impossible,
                    fmt::format("no task could be started for {}: {}: {}", format_duration(so_far),
                                exec::describe(ended), ended.detail)};
}

/// What is no success although its process ended well. false: that is not known yet.
bool Drive::check_output(exec::Ended& ended, bool later) {
  if (auto why = workload_->cut_short(ended.task, ended.token)) {
    ended.cause = exec::Cause::stopped_early;
    ended.detail = *std::move(why);
  }
  if (ended.cause != exec::Cause::ok) return true;
  const auto done = workload_->finish(task(ended.task), ended.token, batch_, later);
  if (!done && done.error().kind == ErrorKind::interrupted && env_.stop_signals() == 0 && !error_) {
    early_.push_back(ended);
    return false;
  }
  if (!done) spoil(ended, done.error());
  return !done || *done;
}

/// Ends of what an earlier runner started, which came before what they take in was brought.
void Drive::hear_again_of_the_early() {
  for (auto& ended : std::exchange(early_, {})) {
    if (!knows(ended.task, ended.token)) continue;
    const std::size_t before = early_.size();
    live_.contains(ended.token.value) ? on_ended(std::move(ended), true)
                                      : hear_last_words(std::move(ended));
    more_ = more_ || early_.size() == before;
  }
}

void Drive::spoil(exec::Ended& ended, const Error& error) {
  ended.cause = cause_of(error, exec::Cause::not_as_declared);
  ended.detail = error.message + (ended.detail.empty() ? "" : "; " + ended.detail);
}

}  // namespace berth::run
