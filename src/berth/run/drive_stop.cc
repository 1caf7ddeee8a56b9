// What a stop means for a run that runs.
#include "berth/base/units.h"
#include "berth/run/drive.h"

namespace berth::run {
namespace {

constexpr Duration kKillTimeout = std::chrono::seconds(5);  // within that tasks that are killed end
/// Asked to stop, a machine that cannot be reached is called for so long.
constexpr Duration kReachedWithin = std::chrono::seconds(10);
constexpr Duration kLooksForTheCut = std::chrono::seconds(1);

}  // namespace

void Drive::heed_stop_signals() {
  const int signals = env_.stop_signals();
  if (signals == stops_heeded_) return;
  const bool again = stops_heeded_ > 0 || signals > 1;
  stops_heeded_ = signals;
  observer_.on_note(again ? "stopping at once" : "stopping; once more to stop at once");
  if (const auto reading = workload_->reading(); !again && reading)
    observer_.on_note(fmt::format("{} is broken off after {}", reading->what,
                                  format_duration(env_.now() - reading->since)));
  scheduler_->stop(effects_);
  gives_up_at_ = env_.now() + kReachedWithin;
  for (auto& berthed : berthed_)
    if (berthed->silent != nullptr) leave(*berthed);  // it has been called all the time
  if (!again) return;
  for (auto& berthed : berthed_) berthed->worker->tell(exec::Abandon{});
  gives_up_at_ = env_.now() + kKillTimeout;
}

void Drive::abandon() {
  for (auto& berthed : berthed_) {
    berthed->worker->tell(exec::Abandon{});
    berthed->worker->finish();
  }
}

/// Told to stop, a worker whose machine cannot be reached is left to its lease, and a place that
/// takes no output to a resume; told to stop at once, any that does not.
void Drive::leave_the_silent() {
  if (!gives_up_at_ || env_.now() < *gives_up_at_) return;
  const bool at_once = stops_heeded_ > 1;
  gives_up_at_.reset();
  if (!at_once) gives_up_at_ = env_.now() + kLooksForTheCut;
  for (auto& left : workload_->leave(env_.now() - (at_once ? kKillTimeout : kReachedWithin)))
    on_finished(std::move(left));
  for (auto& berthed : berthed_) {
    if (!at_once && !berthed->worker->cut()) continue;
    if (!berthed->apart || (scheduler_->idle(berthed->id) && berthed->worker->idle())) continue;
    leave(*berthed);
  }
}

void Drive::leave(Berthed& berthed) {
  berthed.lost = Error{
      ErrorKind::busy,
      fmt::format("{} did not answer: what runs there ends with its lease", berthed.alloc.machine)};
  observer_.on_note(berthed.lost->message);
}

}  // namespace berth::run
