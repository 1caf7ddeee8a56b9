// Drive is the loop of one try of a run: it takes the run over and goes round until the run is
// over. Each turn it asks for room (Leases), waits for whatever happens first, takes what the
// workers report (Workers, Attempts), asks the workload what can run next, carries out what the
// scheduler decides, and has it recorded (Recorder). What each of these knows stands in its header.
//
// Ownership: it owns all parts of the runner; it refers to the Context and the Observer. Threads:
// one. Failure: an Error ends this try; what was recorded stays, and another Drive goes on from
// there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "berth/run/drive/device_watch.h"
#include "berth/run/drive/recovery.h"
#include "berth/store/database.h"

namespace berth::run {

class Drive {
 public:
  Drive(Context& context, store::RunRecord record, std::unique_ptr<Workload> workload,
        Observer& observer, Sources sources, machine::Ledger ledger, LogWriter log,
        RecoveredAgents recovered);
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  /// Takes the run over, with what earlier runners left. `tries`: since something went well;
  /// `only`: the tasks that may start, unless it is empty.
  Status begin(std::int64_t tries, const std::vector<TaskNumber>& only);
  Status turn();
  bool over() const;
  /// The run has an alloc, or had one.
  bool leased() const { return phase_ == store::Phase::eval; }
  /// Something was completed by this try.
  bool has_progressed() const { return recorder_.has_progressed(); }
  /// While the store's server does not answer nothing is begun or recorded; what runs is looked
  /// after all the same. False: a stop waits for the store no longer.
  bool wait_for_store(const store::StoreWait& wait);
  /// Ends what runs and listens to none of it: nobody can take it over.
  void abandon();
  /// Records how the run ended.
  Result<store::RunRecord> settle();

 private:
  Status take_over();
  store::RunState outcome() const;
  void settle_waiting(store::RunState state);
  Status advance();
  void apply(Next& next);
  Status seek_allocs();
  void assign(Lease lease);
  Status wait(Mono until);
  void keep_leases();
  void reap_lost();
  Status give_back();
  Status await_counts();
  void report_deleted_files();
  Status leave_for_resume(Error error);
  void step();
  void retain();
  void on_durable();
  void on_attempt_end(WorkerSlot* slot, const exec::Ended& ended);
  void show();
  void keep_what_it_waits_for();
  Holdings holdings() const { return workers_.holdings(!attempts_.empty()); }

  // What a stop means: drive_stop.cc.
  void heed_stop_signals();
  bool heed_stop_without_store();
  void leave_the_silent();
  void leave(WorkerSlot& slot);

  Context& context_;
  ActiveRun run_;
  Recorder recorder_;
  Leases leases_;
  Workers workers_;
  Attempts attempts_;
  Recovery recovery_;
  DeviceWatch devices_;

  bool more_ = false;  // the workload has not looked at everything
  store::Phase phase_ = store::Phase::init;
  std::optional<machine::AllocId> primary_;  // as recorded
  std::int64_t tries_ = 0;
  store::RunState state_ = store::RunState::queued;  // as recorded, until the end
  Wall taken_over_;
  bool settled_ = false;
  std::map<std::string, exec::Worker::DeletedFiles> deleted_files_;  // by host
  std::optional<std::string> kept_waiting_for_;                      // in waits_file()

  int stops_heeded_ = 0;
  std::optional<Mono> gives_up_at_;      // stopping: whatever does not end or answer by then
  std::optional<Mono> leaves_store_at_;  // stopping, where the store does not answer by then
};

/// Turns the loop once, until the store's server may have answered or `until`.
Status turn_for_store(os::Env& env, const store::StoreWait& wait, Mono until);

}  // namespace berth::run
