// Where allocs come from. A Pool is what can be leased: it makes offers, and one that is accepted
// is an alloc, which lives as long as it is kept alive and until it is freed. A Cluster is a pool
// that is asked for what one needs, and that may grow to have it.
//
// Ownership: an alloc belongs to whoever accepted it; it ends with free(), when it expires, or, on
// this machine, with the process. Threads: one. Nothing here waits: whoever is told busy asks again
// at retry_at(). Failure: busy (not now: it is taken, or not there yet), impossible (more than
// there will ever be), stale (no alloc of that id any more), io. A call that fails changes nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/time.h"
#include "berth/machine/ledger.h"

namespace berth::cluster {

using machine::AllocId;
/// Whose it is and what for: run, program, parameters. They travel with the alloc.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// What may be taken of one machine now.
struct Offer {
  std::string machine;  // its name within the pool
  machine::Block free, total;
  std::shared_ptr<machine::DeviceLinks> links = {};
};

struct Wish {
  Requirements requirements;  // at least `min`, best room for `width` of it
  machine::DeviceSelection selection = {};
  std::int64_t priority = 0;  // greater goes first, where there is a queue
  bool waits = false;         // keeps a place in the queue, where there is one
  Labels labels = {};
  std::vector<std::string> avoid = {};  // machines that are not wanted, where there is a choice
};

struct Alloc {
  AllocId id;
  std::string machine;
  machine::Block block;
  std::shared_ptr<machine::DeviceLinks> links = {};
  Labels labels = {};
  std::optional<Mono> expires = {};  // none: with the process
  std::optional<Mono> closes = {};   // from then on nothing new is begun on it: its end is near
};

class Pool {
 public:
  virtual ~Pool() = default;
  virtual Result<std::vector<Offer>> offers() = 0;
  /// `part` of the offer, or all of it. busy: it is not there any more.
  virtual Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                               const Labels& labels) = 0;
  /// Until when it lives now; none: as long as the process.
  virtual Result<std::optional<Mono>> keepalive(AllocId id) = 0;
  virtual Result<Alloc> inspect(AllocId id) = 0;
  virtual Status free(AllocId id) = 0;
  /// Whether somebody else waits for what we hold, and would be served before a new wish.
  virtual Result<bool> others_wait(std::int64_t /*priority*/) { return false; }
};

class Cluster : public Pool {
 public:
  /// impossible: it would not fit even if all were free and grown, without those to avoid.
  virtual Result<Alloc> allocate(const Wish& wish) = 0;
  /// After busy: when asking again may be worth it.
  virtual Mono retry_at() = 0;
  /// Gives the place in the queue up.
  virtual void stop_waiting() {}
  /// `wake` is called in a turn of the loop when asking again may be worth it before retry_at().
  virtual void on_change(std::function<void()> wake) { wake_ = std::move(wake); }

 protected:
  void changed() const {
    if (wake_) wake_();
  }

 private:
  std::function<void()> wake_;
};

/// The offer that fits closest: of those with room for the least, what leaves the least behind.
/// `part` is as many of `min` as there is room for, up to `width`; none (all of the offer) when
/// what is left would be of no use to anybody: no whole core, or no memory.
struct Choice {
  std::size_t offer = 0;
  std::optional<machine::Request> part;
};
/// busy: none has room now; impossible: none would have if it were all free.
Result<Choice> closest(std::span<const Offer> offers, const Wish& wish);
/// Offers, choice, acceptance; again when another was quicker, a few times.
Result<Alloc> take_closest(Pool& pool, const Wish& wish);

/// Any pool, as a cluster that does not grow. The pool outlives it.
std::unique_ptr<Cluster> static_cluster(os::Env& env, Pool& pool);

/// "digits-3": of the labels, who it is for.
std::string name_of(const Labels& labels);

}  // namespace berth::cluster
