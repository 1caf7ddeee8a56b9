// A Pool is what `berth-agent pool` offers to a runner on another machine: it says what this
// machine has, and leases parts of it from the machine's ledger, each with an agent of its own. The
// messages are in pool_protocol.h.
//
// Ownership: it refers to the Env. Threads: one. Failure: each request is answered with its error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/protocol/pool_protocol.h"
#include "berth/cluster/local.h"
#include "berth/machine/devices/device_health.h"
#include "berth/os/env.h"

namespace berth::agent {

/// The directory that holds the lease directories of allocs which other machines asked for: places/
/// in $XDG_STATE_HOME/berth, else in ~/.local/state/berth.
Result<std::string> leases_directory(os::Env& env);

class Pool {
 public:
  /// Each alloc gets an agent that runs `program`.
  static Result<std::unique_ptr<Pool>> open(os::Env& env, std::string program);
  PoolAnswer answer(const PoolCall& call);
  /// Ends the agents of its leases that no runner has come for: who asked for them is not there any
  /// more, and may not even know of them.
  void let_go();

 private:
  Pool(os::Env& env, std::string program, std::string leases, machine::Ledger ledger);
  void sweep();
  Result<machine::Host> host();
  Result<MachineOffer> offer();
  Result<Leased> lease(const AskLease& wanted);
  Result<std::string> start(const AskLease& wanted, const machine::Block& block,
                            const std::string& lease_directory, machine::AllocId id);

  os::Env& env_;
  const std::string program_, leases_;
  machine::Ledger ledger_;
  std::optional<machine::Devices> devices_;  // read when they are first asked for
  std::vector<std::string> notes_;
  std::vector<std::string> leased_;  // lease directories
  std::vector<machine::AllocId> unfreed_;
  cluster::LocalCluster cluster_;
};

/// Answers on standard output what comes on standard input, until the connection ends.
Status serve_pool(os::Env& env, const std::string& agent_program);

}  // namespace berth::agent
