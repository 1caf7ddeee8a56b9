// A Host is one other machine as a cluster of its own. It asks `berth-agent pool` there for offers
// and allocs over one connection, which it makes when it first needs it, and again when it broke.
//
// No call waits: a call whose answer has not come yet fails as busy, and retry_at() is soon. An
// alloc is an agent on that machine that lives by its lease; it ends when nobody sends it anything.
//
// Ownership: it refers to the Env. Threads: one. Failure: that of Cluster. The Host dials a machine
// that cannot be reached again after a growing pause; until the machine has answered, every call
// fails with the reason, whose kind says whether a retry can mend it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/client/agent_client.h"
#include "berth/agent/protocol/connection.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/agent/protocol/pool_protocol.h"
#include "berth/remote/transport.h"

namespace berth::remote {

/// What to ask a machine for: `part` of its offer, or all of the offer; `least` is what one task
/// takes.
Resources part_of(const cluster::Offer& offer, const std::optional<machine::Request>& part,
                  const Resources& least);

struct HostOptions {
  Duration lease = std::chrono::minutes(2);
  bool outlive = false;  ///< Allocs outlive the runner until nothing runs on them.
};

class Host final : public RemoteCluster {
 public:
  Host(os::Env& env, Transport transport, AgentFile agent, HostOptions options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() override;

  const std::string& name() const { return transport_.name; }
  const Transport& transport() const { return transport_; }
  /// Why the machine could not be reached, until it answers.
  std::optional<Error> failure() const { return falls_ > 0 ? std::optional(down_) : std::nullopt; }
  /// Whether it was asked for an alloc and has not answered.
  bool asking() const { return wanted_.has_value(); }
  /// What the machine offers, by an answer that is at most a few seconds old. Failure: busy, while
  /// it is being asked.
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
  Result<LeaseDirectory> lease_directory(cluster::AllocId id) override;

 private:
  struct Held {
    cluster::Alloc alloc;
    std::string directory;
    bool attached = false;  // a worker was told of its lease directory, and owns its agent
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
  void on_answer(agent::PoolAnswer answer);
  agent::PoolAnswer forget_grant();
  cluster::AllocId keep(agent::Leased leased, const cluster::Labels& labels);
  void let_go(const std::string& directory);

  os::Env& env_;
  const Transport transport_;
  const AgentFile agent_;
  const HostOptions options_;
  std::unique_ptr<agent::Connection> connection_;
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
  std::vector<std::unique_ptr<agent::AgentClient>>
      leaving_;           // of allocs that no worker attached to
  Status stream_status_;  // what the stream told last
  os::Timer due_{env_.loop(), [this] { step(); }};
};

}  // namespace berth::remote
