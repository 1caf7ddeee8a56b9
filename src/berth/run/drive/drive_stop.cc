// What a stop means for a run that runs, also while its store does not answer.
#include <algorithm>

#include "berth/base/units.h"
#include "berth/os/loop.h"
#include "berth/run/drive/drive.h"

namespace berth::run {
namespace {

constexpr Duration kKillTimeout = std::chrono::seconds(5);  // within that tasks that are killed end
/// Asked to stop, a machine that cannot be reached is called for so long.
constexpr Duration kReachedWithin = std::chrono::seconds(10);
constexpr Duration kCheckCutEvery = std::chrono::seconds(1);
constexpr Duration kStoreWithin = std::chrono::seconds(5);
constexpr Duration kShowEvery = std::chrono::seconds(1);

}  // namespace

void Drive::heed_stop_signals() {
  const int signals = run_.env.stop_signals();
  if (signals == stops_heeded_) return;
  const bool again = stops_heeded_ > 0 || signals > 1;
  stops_heeded_ = signals;
  run_.observer.on_note(again ? "stopping immediately"
                              : "stopping; press again to stop immediately");
  if (const auto reading = run_.workload->reading(); !again && reading)
    run_.observer.on_note(fmt::format("{}{} is cancelled after {}", reading->what, reading->how_far,
                                      format_duration(run_.env.now() - reading->since)));
  run_.scheduler->stop(run_.effects);
  gives_up_at_ = run_.env.now() + kReachedWithin;
  for (auto& slot : workers_)
    if (slot->silent != nullptr) leave(*slot);  // it has been called all the time
  if (!again) return;
  for (auto& slot : workers_) slot->worker->send(exec::Abandon{});
  gives_up_at_ = run_.env.now() + kKillTimeout;
}

void Drive::abandon() {
  for (auto& slot : workers_) {
    slot->worker->send(exec::Abandon{});
    slot->worker->finish();
  }
}

/// When the run is told to stop, a worker whose machine cannot be reached is left to its lease, and
/// an output that cannot be brought to its place is left to a resume. When it is told to stop at
/// once, every worker that does not end is left.
void Drive::leave_the_silent() {
  const Mono now = run_.env.now();
  if (!gives_up_at_ || now < *gives_up_at_) return;
  const bool at_once = stops_heeded_ > 1;
  gives_up_at_.reset();
  if (!at_once) gives_up_at_ = now + kCheckCutEvery;
  for (auto& left : run_.workload->leave(now - (at_once ? kKillTimeout : kReachedWithin)))
    attempts_.on_finished(std::move(left));
  for (auto& slot : workers_) {
    if (!at_once && !slot->worker->cut()) continue;
    if (!slot->apart || (run_.scheduler->idle(slot->id) && slot->worker->idle())) continue;
    leave(*slot);
  }
}

void Drive::leave(WorkerSlot& slot) {
  slot.lost = Error{ErrorKind::busy, fmt::format("{} did not answer: its tasks end with its lease",
                                                 slot.lease.alloc.machine)};
  run_.observer.on_note(slot.lost->message);
}

Status turn_for_store(os::Env& env, const store::StoreWait& wait, Mono until) {
  os::Poll answers(env.loop(), [] {}), takes(env.loop(), [] {});
  answers.watch(wait.fd);
  takes.watch(wait.writable ? wait.fd : -1, os::Poll::For::writing);
  return env.loop().turn(until);
}

bool Drive::wait_for_store(const store::StoreWait& wait) {
  if (!heed_stop_without_store()) {
    abandon();
    return false;
  }
  os::Env& env = run_.env;
  recorder_.progress().waiting_for = "the store " + wait.why;
  show();
  // What tasks print stays in their pipes: it could be kept in memory alone.
  workers_.set_reading(false);
  Mono until = env.now() + std::min(wait.most, kShowEvery);
  until = std::min(until, workers_.deadline().value_or(until));
  if (!turn_for_store(env, wait, until)) return true;
  workers_.collect();
  keep_leases();
  return true;
}

/// What runs is told to end at once; the record of it waits a little for the store.
bool Drive::heed_stop_without_store() {
  const int signals = run_.env.stop_signals();
  if (signals == 0) return true;
  if (!leaves_store_at_) {
    leaves_store_at_ = run_.env.now() + kStoreWithin;
    if (stops_heeded_ == 0) {
      run_.observer.on_note(
          "stopping, although the store does not answer; press again to stop immediately");
      attempts_.cancel_all();
    }
  }
  return signals == 1 && run_.env.now() < *leaves_store_at_;
}

}  // namespace berth::run
