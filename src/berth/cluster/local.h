// A LocalCluster is this machine as a cluster. It leases from the machine's ledger, which all users
// and runs share without a daemon. It does not grow, serves those who wait in turn, and its allocs
// live as long as the process.
#pragma once

#include <functional>
#include <map>

#include "berth/cluster/cluster.h"

namespace berth::cluster {

class LocalCluster final : public Cluster {
 public:
  /// The cluster calls `host` whenever it needs to know what the machine has.
  using ReadHost = std::function<Result<machine::Host>()>;
  LocalCluster(os::Env& env, machine::Ledger ledger, ReadHost host);
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;
  /// Releases what this process still holds.
  ~LocalCluster() override;

  Result<std::vector<Offer>> offers() override;
  Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                       const Labels& labels) override;
  Result<std::optional<Mono>> keepalive(AllocId id) override;
  Result<Alloc> inspect(AllocId id) override;
  Status free(AllocId id) override;
  Result<bool> others_wait(std::int64_t priority) override;

  /// Leases one `min`, whatever the width: a machine that many share is leased in small parts.
  Result<Alloc> allocate(const Wish& wish) override;
  Mono retry_at() override;
  void stop_waiting() override;

 private:
  Result<Alloc> acquire(const machine::AllocRequest& ask, const Labels& labels, bool waits);

  os::Env& env_;
  machine::Ledger ledger_;
  ReadHost host_;
  std::map<AllocId, Alloc> held_;
  std::optional<AllocId> ticket_;     // of the wish that waits in the ledger's queue
  std::optional<Mono> stands_since_;  // when it came to `position_` of the queue
  std::size_t position_ = 0;
  bool shrunk_ = false;  // the last refusal was that the machine is too small now
};

}  // namespace berth::cluster
