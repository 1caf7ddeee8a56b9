// Who holds what of this machine: all allocs of all users and runs, in one directory, without a
// daemon. One small file per user that only its owner writes, changed under a lock on the
// directory, without fsync: it need not survive a boot. A holder that died no longer counts for
// whoever looks next; waiting is first come, first served within a priority.
//
// Ownership: a Ledger keeps only the directory's name; allocs belong to the process that acquired
// them, or to which they were handed over, and end with it. Threads: one at a time; processes as
// many as like. Failure: impossible (more than the machine has), busy (does not fit now, or others
// wait before), denied/full/io with what to do (BERTH_LEDGER). A failed call leaves the ledger as
// it was, but that busy keeps a ticket in the queue and impossible takes it out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::machine {

/// Random, so that it is never issued twice.
using AllocId = Id<struct AllocTag>;

struct Alloc {
  AllocId id;
  Block block;
};

struct Ask {
  Resources resources;
  std::string label;          // "digits-3": shown to whoever is refused
  std::int64_t priority = 0;  // greater first
  DeviceSelection selection = {};
};

/// A live line of the ledger: an alloc that is held, or a request that waits.
struct LedgerEntry {
  AllocId id;
  uid_t user = 0;
  os::ProcessIdentity holder;
  std::string label;
  std::int64_t priority = 0;
  Wall since;                 // held, or waiting, since then; to the millisecond
  std::int64_t sequence = 0;  // order of those that wait since the same millisecond
  bool waiting = false;
  Block block;  // of a waiting one: what it asks for, no cores
  bool operator==(const LedgerEntry&) const = default;
};

class Ledger {
 public:
  /// The directory is made (mode 1777) if it is absent. denied, io.
  static Result<Ledger> open(os::Env& env, std::string directory);
  /// $BERTH_LEDGER, or /run/lock/berth; within a task of Berth's that task's own, in there.
  static std::string default_directory(os::Env& env);

  /// Grants, if it fits beside all live allocs and nobody waits before (greater priority, or the
  /// same and earlier). Else busy: when `ticket` is given, the wish is kept under it in the queue,
  /// and the caller asks again with the same ticket after retry_delay(). The grant ends the ticket:
  /// the alloc has its id, and asking with it again is stale. `host` is the caller's own capacity.
  /// At most 200 bytes of the label are kept.
  Result<Alloc> acquire(const Host& host, const Ask& ask, std::optional<AllocId> ticket);
  /// A ticket for acquire(); not yet in the queue.
  AllocId new_ticket();
  /// stale: not held by this process. Also gives a waiting ticket up.
  Status release(AllocId id);
  /// From now on the alloc is that process's, of the same user, and ends with it instead of with
  /// us. stale: not held by this process; not_found: that one is gone.
  Status hand_over(AllocId id, const os::ProcessIdentity& to);
  /// Whether this process holds it.
  Result<bool> holds(AllocId id);
  /// All live entries: held ones and waiting ones, in the order in which they are served.
  Result<std::vector<LedgerEntry>> entries();
  /// Whether another process waits that would be served before a new ask of this priority: a holder
  /// of many allocs should then give one back when its task ends. Cheap: one look without the lock.
  Result<bool> others_wait(std::int64_t priority);
  /// How long a waiter at `position` (0: next) should sleep before it looks again.
  static Duration retry_delay(std::size_t position);
  /// Of the last busy acquire() of this ticket: how many wait before it.
  std::size_t position() const { return position_; }

 private:
  Ledger(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Result<os::Fd> lock() const;

  os::Env* env_;
  std::string directory_;
  std::size_t position_ = 0;
};

/// Counts as held on the machine whatever of the host these entries and foreign processes have.
std::vector<Reservation> occupy_all(Machine& machine, const Host& host,
                                    std::span<const LedgerEntry> entries);

}  // namespace berth::machine
