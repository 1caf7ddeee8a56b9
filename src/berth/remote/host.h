// A machine behind a door, as a cluster of its own: `berth-agent pool` there is asked for offers
// and allocs over one connection, which is made when it is first needed and again when it broke.
//
// Nothing waits: what is not answered yet is busy, and retry_at() is soon. An alloc is an agent
// that lives there by its lease; whoever stops speaking to it loses it.
//
// Ownership: refers to Env. Threads: one. Failure: as Cluster has it. A machine that cannot be
// reached is dialled again after a growing pause; until it has answered every call fails with the
// reason, whose kind says whether a retry can mend it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/line.h"
#include "berth/agent/line_stream.h"
#include "berth/agent/link.h"
#include "berth/agent/pool_protocol.h"
#include "berth/remote/door.h"

namespace berth::remote {

/// What is to be asked for: of a machine, this part of the offer, or all of it, where `least` is
/// what one task takes.
Resources part_of(const cluster::Offer& offer, const std::optional<machine::Request>& part,
                  const Resources& least);

struct HostOptions {
  Duration lease = std::chrono::minutes(2);
  bool outlive = false;  // allocs go on without us until nothing runs
};

class Host final : public FarCluster {
 public:
  Host(os::Env& env, Door door, AgentFile agent, HostOptions options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() override;

  const std::string& name() const { return door_.name; }
  const Door& door() const { return door_; }
  /// Why it could not be reached, until it answers.
  std::optional<Error> failure() const { return falls_ > 0 ? std::optional(down_) : std::nullopt; }
  /// It has not answered yet what was asked last.
  bool asking() const { return wanted_.has_value(); }
  /// What it answered last, at most a few seconds old; busy: it is being asked.
  Result<agent::MachineOffer> look();

  Result<std::vector<cluster::Offer>> offers() override;
  Result<cluster::Alloc> accept(const cluster::Offer& offer,
                                const std::optional<machine::Request>& part,
                                const cluster::Labels& labels) override;
  Result<std::optional<Mono>> keepalive(cluster::AllocId id) override;
  Result<cluster::Alloc> inspect(cluster::AllocId id) override;
  Status free(cluster::AllocId id) override;
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override;
  Mono retry_at() override;
  Result<Place> place(cluster::AllocId id) override;

 private:
  struct Held {
    cluster::Alloc alloc;
    std::string directory;
    bool staffed = false;  // its agent belongs to whoever asked for its place
  };
  Status ready();
  std::unexpected<Error> no_answer_yet() const;
  void wake() { due_.no_later_than(env_.now()); }
  void step();
  void step_connection();
  void arm();
  Duration timeout() const;
  void fall(Error because);
  void ask(const agent::PoolCall& call);
  void hear(agent::PoolAnswer answer);
  cluster::AllocId keep(agent::Leased leased, const cluster::Labels& labels);
  void let_go(const std::string& directory);

  os::Env& env_;
  const Door door_;
  const AgentFile agent_;
  const HostOptions options_;
  std::unique_ptr<agent::Line> line_;
  agent::LineStream stream_;
  int falls_ = 0;              // connections that broke since it answered
  std::optional<Mono> up_at_;  // not before it is tried again
  Error down_;                 // why

  std::optional<agent::PoolCall> asked_;
  Mono asked_at_{};
  std::optional<agent::AskLease> wanted_;     // of the lease that is asked for, or answered
  std::optional<agent::PoolAnswer> granted_;  // the answer to that
  cluster::Labels labels_;                    // of it
  std::optional<agent::MachineOffer> offer_;
  std::optional<Mono> offered_at_, granted_at_;

  std::map<cluster::AllocId, Held> held_;
  std::vector<std::unique_ptr<agent::Link>> leaving_;  // allocs that nobody staffed
  Status stream_status_;                               // what the stream told last
  os::Timer due_{env_.loop(), [this] { step(); }};
};

}  // namespace berth::remote
