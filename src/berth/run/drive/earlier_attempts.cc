// Attempts that an earlier runner of the run started.
#include <algorithm>
#include <utility>

#include "berth/run/drive/attempts.h"

namespace berth::run {

bool Attempts::retry_early() {
  bool progress = false;
  for (auto& ended : std::exchange(early_, {})) {
    const bool lives = live_.contains(ended.token.value);
    if (!lives && !run_.is_current(ended.task, ended.token)) continue;
    const std::size_t before = early_.size();
    lives ? end(std::move(ended), true) : end_from_journal(std::move(ended));
    progress = progress || early_.size() == before;
  }
  return progress;
}

bool Attempts::fail_early() {
  const auto known = static_cast<std::size_t>(std::ranges::count_if(
      early_, [&](const exec::Ended& ended) { return is_known(ended.token); }));
  if (live_.size() != known || !run_.scheduler->waits_only_for(known)) return false;
  bool failed = false;
  for (auto& ended : early_) {
    if (ended.cause != exec::Cause::ok || !is_known(ended.token)) continue;
    ended.cause = exec::Cause::cannot_start;  // no retry could
    ended.detail =
        "it succeeded, but a task that it reads from failed in this run, so its output was not "
        "used";
    failed = true;
  }
  return failed;
}

std::vector<schedule::Earlier> Attempts::adopt(const WorkerSlot& slot,
                                               std::span<const schedule::Earlier> attempts) {
  std::vector<schedule::Earlier> adopted;
  for (const auto& each : attempts) {
    if (!run_.is_current(each.task, each.token)) {
      slot.worker->send(exec::Cancel{each.token});
      if (!run_.is_open(each.task)) continue;
      live_.emplace(each.token.value,
                    Live{.worker = slot.id, .task = each.task, .started = true, .unknown = true});
      if (!run_.waits(each.task)) continue;
      adopted.push_back(each);
      adopted.back().ends = true;
      continue;
    }
    adopted.push_back(each);
    live_.emplace(each.token.value, Live{.worker = slot.id,
                                         .task = each.task,
                                         .devices = run_.task(each.task).devices,
                                         .started = true});
  }
  return adopted;
}

void Attempts::adopted(std::span<const schedule::Earlier> attempts,
                       std::span<const schedule::Effect> effects) {
  for (const auto& each : attempts)
    if (const auto live = live_.find(each.token.value); live != live_.end())
      live->second.ahead = run_.scheduler->waits(each.token);
  for (const auto& effect : effects) {
    run_.effects.push_back(effect);
    const auto* cancel = std::get_if<schedule::CancelAttempt>(&effect);
    const auto dropped = cancel == nullptr ? live_.end() : live_.find(cancel->token.value);
    if (dropped == live_.end() || dropped->second.unknown) continue;
    const TaskNumber number = dropped->second.task;
    live_.erase(dropped);
    if (run_.options().in_turn) run_.scheduler->proceed(number, run_.effects);
  }
}

std::set<schedule::WorkerId> Attempts::unrecorded() const {
  std::set<schedule::WorkerId> workers;
  for (const auto& [token, _] : finishing_) workers.insert(live_.at(token).worker);
  for (const auto& ended : early_)
    if (const auto live = live_.find(ended.token.value); live != live_.end())
      workers.insert(live->second.worker);
  return workers;
}

bool Attempts::journals_are_needed() const {
  return std::ranges::any_of(
      early_, [&](const exec::Ended& ended) { return !live_.contains(ended.token.value); });
}

}  // namespace berth::run
