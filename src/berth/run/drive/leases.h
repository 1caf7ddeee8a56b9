// Leases decides who gives the run room: it asks the run's clusters (the main one, then the
// auxiliary ones) for allocs while some task finds no room, renews the leases of the allocs that
// the run has, and knows why the run waits when there is none.
//
// Ownership: it owns the clusters; a Lease belongs to the worker on it and goes back with free().
// It refers to the ActiveRun and the Context. Threads: one. Failure: seek() returns an Error only
// where this try of the run is over; a cluster that refuses is asked again after the pause that it
// asks for, and is closed once it gave nothing but errors for too long (see source.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/cluster/cluster.h"
#include "berth/run/drive/active_run.h"
#include "berth/run/drive/source.h"

namespace berth::run {

/// An alloc, the source that it came from, and when its lease is due to be renewed.
struct Lease {
  std::size_t source = 0;  // number of the source: 0 is the main one
  cluster::Alloc alloc;
  std::optional<machine::DeviceSelection> selection{};  // that its devices were asked by
  std::optional<Mono> renew_at{};                       // none: it lives as long as this process
  bool is_remote = false;                               // not on this machine
};

/// What the run has of workers at this moment, as far as asking for more depends on it.
struct Holdings {
  bool has_workers = false;
  bool has_alloc = false;     // some worker can be given tasks
  bool is_running = false;    // some attempt runs
  std::string silences = {};  // which machines do not answer, and why; "": all do
};

class Leases {
 public:
  Leases(ActiveRun& run, Context& context, Sources sources, machine::Ledger ledger);

  /// Asks each source that may be asked now, the main one first, for what finds no room; returns
  /// the first alloc that is given. The caller starts a worker on it and asks again. With nothing
  /// in hand the run queues for its first alloc; with one, it takes more only where they lie free.
  Result<std::optional<Lease>> seek(const Holdings& holdings);
  /// Nothing finds no room: gives up the places in the sources' queues.
  void stop_waiting();
  /// Why the run waits: who does not answer, what each source answered last, and which machines are
  /// avoided because the first task in the queue failed there.
  std::string waiting_for(const Holdings& holdings) const;
  /// Where no source will ever give what a further attempt of the first task in the queue asks for,
  /// it asks for what the largest machine has, or else for what the last attempt had. True: it asks
  /// for less now.
  bool bound_growth();
  /// The error that ends this try: no worker is left, and no source will ever give what the first
  /// task in the queue wants.
  std::optional<Error> no_source_left(const Holdings& holdings) const;

  /// Renews the lease when a third of it has gone; a renewal that fails is tried again soon.
  /// Returns the reason, once, when the lease has ended.
  std::optional<Error> keep(Lease& lease);
  void free(const Lease& lease);
  /// The worker on an alloc of this source was lost: `because` unconfirmed closes the source, any
  /// other reason is answered by a growing pause.
  void on_lost(const Lease& lease, const Error& because, const Holdings& holdings);
  /// A task has ended well on an alloc of this source.
  void on_success(const Lease& lease) { sources_[lease.source].losses = 0; }

  /// The source's own function that makes workers; none: they are processes of this machine.
  const Source& source(const Lease& lease) const { return sources_[lease.source].source; }
  bool main_is_remote() const { return sources_.front().source.start_worker != nullptr; }
  /// All that this machine has, where the run has no other; else nothing, for that is not known.
  Result<Resources> largest();
  const cluster::Labels& labels() const { return labels_; }

  /// Machines are numbered for the scheduler, from 1; this machine's allocs each count as one of
  /// their own, numbered 0.
  std::int64_t number_of(const Lease& lease);
  /// Machines on which the task is not started now: it failed there.
  std::vector<std::string> avoided(TaskNumber task) const;
  /// The capacity of this machine, or the health of its devices, has changed: it is read anew.
  void machine_changed();

  /// Does what the clusters do by themselves, and looks whether others wait for what this run
  /// holds, as often as that is due while the run has workers.
  void turn(bool has_workers);
  std::optional<Mono> deadline() const;
  /// Whether others were seen to wait since the last call: one alloc of the main source is theirs.
  bool take_others_wait() { return std::exchange(others_wait_, false); }

 private:
  struct Leasing {
    Source source;
    std::optional<Mono> seek_at{};         // it had no room: when asking again is worth it
    Mono paused_until{};                   // its last worker was lost: not before
    int losses = 0;                        // of its workers, since a task ended well there
    std::optional<Error> refusal{};        // what it answered last; none: an alloc
    TaskNumber refused_task{};             // what it was asked for then
    std::optional<Mono> failing_since{};   // it gave nothing but errors since then
    bool has_served = false;               // it gave an alloc
    bool closed = false;                   // it is not asked any more
    std::string noted{};                   // the error that was noted last
    std::optional<Mono> tend_at = Mono{};  // when it has something to do by itself
  };

  Result<std::optional<Lease>> ask_main(const Holdings& holdings);
  std::optional<Lease> ask_auxiliary(Leasing& from, const Holdings& holdings);
  cluster::Wish wish(TaskNumber task, std::int64_t width) const;
  Lease lease(Leasing& from, cluster::Alloc alloc, TaskNumber task);
  void on_refusal(Leasing& from, TaskNumber task, Error error, const Holdings& holdings);
  Result<machine::Host> read_host();

  ActiveRun& run_;
  Context& context_;
  std::vector<Leasing> sources_;
  cluster::Labels labels_;
  std::map<std::string, std::int64_t> machines_;  // elsewhere, by name: their numbers, from 1
  TaskNumber passed_task_;  // the first that found no room, while others behind it got some
  int passed_ = 0;          // how many did
  std::optional<Mono> look_at_;
  bool others_wait_ = false;
  std::optional<machine::Host> host_;  // as read last
  std::optional<Mono> host_read_at_;   // none: it has to be read
};

}  // namespace berth::run
