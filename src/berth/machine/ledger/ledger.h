// The machine's ledger: the allocs of all users and runs on this machine, in one directory, without
// a daemon. Each user has one small file that only its owner writes; it is changed under a lock on
// the directory, without fsync, as it need not survive a boot. A holder that died no longer counts
// for the next reader, in any container that shares the directory (ledger_holders.h). Waiting is
// first come, first served within a priority.
//
// Ownership: an alloc belongs to the process that acquired it, or to which it was handed over, and
// ends with that process. Seen from another PID namespace, it ends with the Ledger that acquired
// it, or on which that process called keep(). Threads: one at a time; any number of processes.
// Errors: impossible (more than the machine has), busy (does not fit now, or others wait before),
// denied, full and io with what to do (BERTH_LEDGER). A failed call leaves the ledger as it was,
// except that busy keeps a ticket in the queue and impossible removes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/ids.h"
#include "berth/base/result.h"
#include "berth/machine/machine.h"
#include "berth/os/env.h"

namespace berth::machine {

/// A random number, so that none is issued twice.
using AllocId = Id<struct AllocTag>;

struct Alloc {
  AllocId id;
  Block block;
};

struct AllocRequest {
  Resources resources;
  std::string label;          // "digits-3": shown in refusals of others
  std::int64_t priority = 0;  // greater first
  DeviceSelection selection = {};
};

/// A live entry of the ledger: an alloc that is held, or a request that waits.
struct LedgerEntry {
  AllocId id;
  uid_t user = 0;
  os::ProcessIdentity holder;
  std::string label;
  std::int64_t priority = 0;
  Wall since;                 // held, or waiting, since then; to the millisecond
  std::int64_t sequence = 0;  // orders entries of the same millisecond
  bool waiting = false;
  Block block;  // of a waiting request: what it asks for, without cores
  bool operator==(const LedgerEntry&) const = default;
};

class Ledger {
 public:
  /// Creates the directory (mode 1777) if it is absent. Errors: denied, io.
  static Result<Ledger> open(os::Env& env, std::string directory);
  /// $BERTH_LEDGER, or /run/lock/berth; within a task of Berth the task's own ledger below it.
  static std::string default_directory(os::Env& env);

  /// Grants the request if it fits beside all live allocs and nobody waits before (with a greater
  /// priority, or the same and earlier). Else busy: with a `ticket` the request waits in the queue
  /// under it, and the caller asks again with the same ticket after retry_delay(). The grant ends
  /// the ticket: the alloc has its id, and asking with it again is stale. `host` is the caller's
  /// own capacity. At most 200 bytes of the label are kept.
  Result<Alloc> acquire(const Host& host, const AllocRequest& ask, std::optional<AllocId> ticket);
  /// A new ticket for acquire(), which is not in the queue yet.
  AllocId new_ticket();
  /// Releases an alloc, or withdraws a waiting ticket. Errors: stale if this process does not hold
  /// it.
  Status release(AllocId id);
  /// Releases all that this process holds or waits for under this label: what an earlier release
  /// could not write down.
  Status release_all(std::string_view label);
  /// Hands the alloc to another process of the same user: it ends with that process from now on.
  /// Errors: stale if this process does not hold it, not_found if the other process is gone.
  Status hand_over(AllocId id, const os::ProcessIdentity& to);
  /// Shows to other PID namespaces that this process lives, as long as this object does. A process
  /// to which an alloc is handed over calls it before. Errors: denied, io.
  Status keep();
  /// Whether this process holds it.
  Result<bool> holds(AllocId id);
  /// All live entries: those that are held, then those that wait, in the order of service.
  Result<std::vector<LedgerEntry>> entries();
  /// Whether another process waits that would be served before a new request of this priority: then
  /// a holder of many allocs should give one back when its task ends. It is cheap, as it takes no
  /// lock.
  Result<bool> others_wait(std::int64_t priority);
  /// How long a waiter at `position` (0: next) should sleep before it asks again.
  static Duration retry_delay(std::size_t position);
  /// How many waited before the ticket at its last busy acquire().
  std::size_t position() const { return position_; }

 private:
  Ledger(os::Env& env, std::string directory) : env_(&env), directory_(std::move(directory)) {}
  Result<os::Fd> lock() const;
  Status keep_locked();

  os::Env* env_;
  std::string directory_;
  std::shared_ptr<os::Fd> holder_;  // the lock as a holder; null before keep_locked()
  std::size_t position_ = 0;
};

/// Counts what these entries and foreign processes hold of the host as taken on the machine.
std::vector<Reservation> occupy_all(Machine& machine, const Host& host,
                                    std::span<const LedgerEntry> entries);

}  // namespace berth::machine
