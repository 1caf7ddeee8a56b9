#include "berth/run/drive/drive.h"

#include <algorithm>
#include <utility>

#include "berth/os/failpoint.h"
#include "berth/os/loop.h"
#include "berth/run/state/clusters.h"

namespace berth::run {
namespace {

/// Rounds of what is ready, started and ready again, before the processes are looked at.
constexpr int kRounds = 8;
/// Whatever happens wakes the loop. It looks around so often all the same.
constexpr Duration kLongestSleep = std::chrono::minutes(1);

}  // namespace

bool Drive::over() const {
  if ((more_ || run_.workload->busy()) && stops_heeded_ == 0 && !run_.error) return false;
  return run_.scheduler->over() || run_.scheduler->quiet();
}

Status Drive::turn() {
  leaves_store_at_.reset();
  heed_stop_signals();
  BERTH_ASSIGN(const auto claims_last, store::keep_claims(*context_.store));
  BERTH_TRY(seek_allocs());
  step();  // before a task starts: the run has started when its first task starts
  attempts_.carry_out();
  BERTH_TRY(wait(run_.env.now() + std::min(claims_last.value_or(kLongestSleep), kLongestSleep)));
  leases_.turn(workers_.count() > 0);
  keep_leases();
  leave_the_silent();
  workers_.close_lost();
  auto messages = workers_.take_messages();
  if (run_.options().outlive && !messages.empty()) recorder_.commit_soon();
  for (auto& message : messages) attempts_.handle(std::move(message));
  attempts_.end_hopeless();
  recovery_.reconcile(stops_heeded_ > 0);
  for (auto& finished : run_.workload->turn()) attempts_.on_finished(std::move(finished));
  reap_lost();
  attempts_.end_unstarted();
  run_.scheduler->tick(run_.env.now(), run_.effects);
  BERTH_TRY(advance());
  more_ = attempts_.retry_early() || more_;
  if (!more_ && !run_.workload->busy()) more_ = attempts_.fail_early();
  attempts_.carry_out();  // the next tasks first: they run while the last ones are made durable
  if (attempts_.no_start()) return leave_for_resume(*attempts_.no_start());
  BERTH_TRY(give_back());
  step();
  if (recorder_.due() || over() || run_.workload->wants_commit()) BERTH_TRY(recorder_.commit());
  show();
  return {};
}

/// Until something comes from a worker, a thread, the person, the screen or the drivers, or
/// something is due.
Status Drive::wait(Mono until) {
  workers_.set_reading(run_.observer.wants_output());
  for (const auto at : {workers_.deadline(), leases_.deadline(), recorder_.commit_at(),
                        run_.scheduler->next_tick(), run_.workload->hopeless_at(), gives_up_at_})
    until = std::min(until, at.value_or(until));
  const bool news = run_.workload->take_news();
  if (news || more_ || attempts_.has_unstarted() || workers_.has_messages()) until = run_.env.now();
  BERTH_TRY(run_.env.loop().turn(until));
  workers_.collect();
  return {};
}

/// Whatever has become possible is looked up, and started where there is room. What may pass is
/// for the runner to try again.
Status Drive::advance() {
  more_ = false;
  for (int round = 0; stops_heeded_ == 0 && !run_.error; ++round) {
    auto next = run_.workload->next();
    if (!next && (next.error().kind == ErrorKind::full || next.error().kind == ErrorKind::busy))
      return std::unexpected(std::move(next).error());
    if (!next) {
      run_.give_up(std::move(next).error());
      return {};
    }
    more_ = next->more || !next->added.empty() || !next->start.empty() || !next->settled.empty();
    apply(*next);
    if (!more_ || round == kRounds || run_.workload->wants_commit()) return {};
  }
  return {};
}

void Drive::apply(Next& next) {
  if (!next.added.empty()) {
    const std::size_t before = run_.tasks.size();
    recorder_.add_tasks(std::move(next.added));
    std::vector<schedule::Task> tasks;
    for (const auto& task : std::span(run_.tasks).subspan(before))
      tasks.push_back(run_.scheduled(task));
    run_.scheduler->add(tasks, run_.effects);
  }
  for (const auto number : next.reopened) {
    recorder_.add(store::TaskReopened{number});
    recorder_.count(number, store::TaskState::waiting);
  }
  recorder_.add(std::move(next.changes));
  for (const auto& note : next.notes) run_.observer.on_note(note);
  for (const auto& [number, to] : next.settled) {
    recorder_.add(store::TaskMoved{number, to});
    recorder_.count(number, to);
    run_.scheduler->settle(number, run_.effects);
  }
  for (const auto number : next.start)
    if (run_.may_start(number)) run_.scheduler->proceed(number, run_.effects);
  attempts_.carry_out();
}

Status Drive::seek_allocs() {
  while (true) {
    BERTH_ASSIGN(auto lease, leases_.seek(holdings()));
    if (!lease && leases_.bound_growth()) continue;
    if (!lease) break;
    assign(*std::move(lease));
    BERTH_TRY(advance());  // what is proposed as there is room for it
  }
  if (auto error = leases_.no_source_left(holdings())) return leave_for_resume(*std::move(error));
  recorder_.progress().waiting_for = leases_.waiting_for(holdings());
  if (run_.scheduler->wanting(1).empty()) leases_.stop_waiting();
  return {};
}

void Drive::assign(Lease lease) {
  os::failpoint("alloc");
  const Source& source = leases_.source(lease);
  WorkerSlot& slot = workers_.assign(std::move(lease), source);
  run_.scheduler->joined(
      {.id = slot.id,
       .resources =
           run_.offered(slot.lease.alloc, slot.lease.selection, slot.lease.alloc.block.resources),
       .kind = slot.lease.source == 0 ? schedule::Kind::primary : schedule::Kind::stealer,
       .machine = leases_.number_of(slot.lease)},
      run_.env.now(), run_.effects);
  attempts_.carry_out();
}

/// What is about to end gets nothing new. A lease that has ended takes its worker along, whatever
/// that still reports.
void Drive::keep_leases() {
  for (auto& slot : workers_) {
    auto& closes = slot->lease.alloc.closes;
    if (closes && run_.env.now() >= *closes) {
      closes.reset();
      run_.scheduler->close(slot->id);
    }
    if (auto ended = leases_.keep(slot->lease)) slot->lost = std::move(ended);
  }
}

void Drive::reap_lost() {
  for (auto& slot : workers_.take_lost()) {
    // One that is unconfirmed lives, and holds its part of that machine.
    if (slot->lost->kind == ErrorKind::unconfirmed) slot->worker->finish();
    recovery_.reap(*slot);
    leases_.free(slot->lease);
    leases_.on_lost(slot->lease, *slot->lost, holdings());
  }
}

/// Idle workers whose alloc nobody here needs go, and their allocs are free.
Status Drive::give_back() {
  const bool wanted = run_.scheduler->next_tick().has_value();  // a retry is due soon
  // settle() may want to keep it.
  const bool ending = run_.options().retain > Duration(0) && run_.scheduler->over() && !settled_;
  const WorkerSlot* kept = ending ? workers_.primary() : nullptr;
  const auto unneeded = [&](const WorkerSlot& slot) {
    const bool idle = run_.scheduler->idle(slot.id) && slot.worker->idle();
    if (!idle || &slot == kept) return false;
    return run_.scheduler->closed(slot.id) || (slot.lease.source == 0 && !wanted);
  };
  // A worker apart has done its last only when that is acknowledged.
  if (std::ranges::any_of(workers_,
                          [&](const auto& slot) { return slot->apart && unneeded(*slot); }))
    BERTH_TRY(recorder_.commit());
  for (auto& slot : workers_.take(unneeded)) {
    run_.scheduler->left(slot->id);
    const auto deleted = slot->worker->deleted_files().value_or(exec::Worker::DeletedFiles{});
    auto& of_host = deleted_files_[slot->lease.alloc.machine];
    of_host.files += deleted.files;
    of_host.bytes += deleted.bytes;
    slot->worker->finish();
    leases_.free(slot->lease);
  }
  return {};
}

/// The run cannot go on now. Its tasks stay open; why is recorded with it.
Status Drive::leave_for_resume(Error error) {
  recorder_.add(store::RunMoved{state_, run_.env.wall(), error.message});
  BERTH_TRY(recorder_.commit());
  return std::unexpected(std::move(error));
}

/// What has ended and is not recorded stays with its worker: a later runner hears of it again.
void Drive::on_durable() {
  const auto unrecorded = attempts_.unrecorded();
  for (auto& slot : workers_)
    if (slot->deferred.empty() && !unrecorded.contains(slot->id)) slot->worker->acknowledge();
  os::failpoint("after acknowledge");
  recovery_.forget_dead();
}

/// One alloc goes to others each time that they were seen to wait: the next look tells whether it
/// was enough.
void Drive::on_attempt_end(WorkerSlot* slot, const exec::Ended& ended) {
  if (slot == nullptr) return;
  if (ended.cause == exec::Cause::ok) leases_.on_success(slot->lease);
  if (slot->lease.source == 0 && leases_.take_others_wait()) run_.scheduler->close(slot->id);
}

void Drive::show() {
  recorder_.count_all();
  Progress& progress = recorder_.progress();
  progress.workers = workers_.count();
  progress.doing = workers_.doing();
  auto& why = attempts_.empty() ? progress.waiting_for : progress.doing;
  auto& since = attempts_.empty() ? progress.waiting_since : progress.doing_since;
  progress.waiting_since.reset();
  progress.doing_since.reset();
  progress.how_far.clear();
  for (const auto& under_way : {run_.workload->reading(), run_.workload->bringing()}) {
    if (!under_way || !why.empty()) continue;
    why = under_way->what;
    since = under_way->since;
    progress.how_far = under_way->how_far;
  }
  keep_what_it_waits_for();
  run_.observer.on_progress(progress, run_.env.now());
}

/// For who asks why. This machine can be asked by anybody; what others answered, and what takes
/// long to read, only the runner knows.
void Drive::keep_what_it_waits_for() {
  constexpr Duration kLong = std::chrono::seconds(1);
  const bool remote = leases_.main_is_remote();
  std::string text = remote ? recorder_.progress().waiting_for : "";
  if (!remote)
    if (const auto reading = run_.workload->reading();
        reading && run_.env.now() - reading->since >= kLong)
      text = reading->what;
  if (kept_waiting_for_ == text || (!remote && !kept_waiting_for_ && text.empty())) return;
  kept_waiting_for_ = text;
  if (remote || !text.empty())
    (void)run_.env.replace_file(waits_file(run_.directory), text, 0600);
  else
    (void)run_.env.remove_file(waits_file(run_.directory));
}

}  // namespace berth::run
