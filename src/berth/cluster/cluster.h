// Pools and clusters lease parts of machines. A Pool makes offers; an offer that is accepted is an
// alloc, which lives while it is kept alive and until it is freed. A Cluster is a pool that can be
// asked for what somebody needs, and that may grow to have it.
//
// Ownership: an alloc belongs to whoever accepted it. It ends with free(), when it expires, or, on
// this machine, with the process. Threads: one. No call waits: a caller that is told busy asks
// again at retry_at(). Failure: busy (it is taken, or not there yet), impossible (it is more than
// there will ever be), stale (there is no alloc of that id any more), io. A call that fails changes
// nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/time.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::cluster {

using machine::AllocId;
/// Labels say whose an alloc is and what for (run, program, parameters), and stay with it.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// What can be leased of one machine now.
struct Offer {
  std::string machine;  ///< Its name within the pool.
  machine::Block free, total;
  std::shared_ptr<machine::DeviceLinks> links = {};
};

/// What a cluster is asked for.
struct Wish {
  Requirements requirements;  ///< At least `min`; at best room for `width` of it.
  machine::DeviceSelection selection = {};
  std::int64_t priority = 0;  ///< The greater goes first, where there is a queue.
  bool waits = false;         ///< It keeps a place in the queue, where there is one.
  Labels labels = {};
  std::vector<std::string> avoid = {};  ///< Machines not to choose, where there is a choice.
};

struct Alloc {
  AllocId id;
  std::string machine;
  machine::Block block;
  std::shared_ptr<machine::DeviceLinks> links = {};
  Labels labels = {};
  std::optional<Mono> expires = {};  ///< nullopt: it ends with the process.
  std::optional<Mono> closes = {};   ///< From then on nothing is begun on it: its end is near.
};

class Pool {
 public:
  virtual ~Pool() = default;
  virtual Result<std::vector<Offer>> offers() = 0;
  /// Leases `part` of the offer, or all of it. Failure: busy, where it is not there any more.
  virtual Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                               const Labels& labels) = 0;
  /// Renews the alloc and returns until when it lives now; nullopt: as long as the process.
  virtual Result<std::optional<Mono>> keepalive(AllocId id) = 0;
  virtual Result<Alloc> inspect(AllocId id) = 0;
  virtual Status free(AllocId id) = 0;
  /// Whether somebody else waits for what we hold, and would be served before a new wish of ours.
  virtual Result<bool> others_wait(std::int64_t /*priority*/) { return false; }
};

class Cluster : public Pool {
 public:
  /// Leases what the wish asks for. Failure: impossible, where it would not fit even if everything
  /// but the machines to avoid were free and the cluster had grown.
  virtual Result<Alloc> allocate(const Wish& wish) = 0;
  /// After a failure as busy: when asking again may be worth it.
  virtual Mono retry_at() = 0;
  /// Gives up the place in the queue.
  virtual void stop_waiting() {}
  /// The cluster calls `wake` in a turn of the loop when asking again may be worth it before
  /// retry_at().
  virtual void on_change(std::function<void()> wake) { wake_ = std::move(wake); }

 protected:
  void changed() const {
    if (wake_) wake_();
  }

 private:
  std::function<void()> wake_;
};

/// The offer that fits a wish closest, and the part of it to take.
struct Choice {
  std::size_t offer = 0;
  /// As many of `min` as there is room for, up to `width`; nullopt (all of the offer), where the
  /// rest would be of no use to anybody, for it has no whole core or no memory.
  std::optional<machine::Request> part;
};
/// Of the offers with room for `min`, the one that leaves the least behind. Failure: busy, where
/// none has room now; impossible, where none would have room if all of it were free.
Result<Choice> closest(std::span<const Offer> offers, const Wish& wish);

/// The name of the run that the labels say the alloc is for: "digits-3".
std::string name_of(const Labels& labels);

}  // namespace berth::cluster
