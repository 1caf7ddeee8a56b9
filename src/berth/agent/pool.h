// The machine that berth-agent is on, to whoever asks through its standard input: what it has, and
// a part of it for an agent of its own, from the machine's ledger. See pool_protocol.h.
//
// Ownership: refers to Env. Threads: one. Failure: answered, each; an end of the connection ends
// it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/agent/pool_protocol.h"
#include "berth/cluster/local.h"
#include "berth/machine/device_health.h"
#include "berth/os/env.h"

namespace berth::agent {

/// Where allocs of this machine live that were asked for from elsewhere: $XDG_STATE_HOME/berth,
/// else
/// ~/.local/state/berth, and there places/.
Result<std::string> places_directory(os::Env& env);

class Pool {
 public:
  /// `program`: the berth-agent that the allocs get.
  static Result<std::unique_ptr<Pool>> open(os::Env& env, std::string program);
  PoolAnswer answer(const PoolCall& call);

 private:
  Pool(os::Env& env, std::string program, std::string places, machine::Ledger ledger);
  void sweep();
  Result<machine::Host> host();
  Result<MachineOffer> offer();
  Result<Leased> lease(const AskLease& wanted);
  Result<std::string> start(const AskLease& wanted, const machine::Block& block,
                            const std::string& place, machine::AllocId id);

  os::Env& env_;
  const std::string program_, places_;
  machine::Ledger ledger_;
  std::optional<machine::Devices> devices_;  // read when they are first asked for
  std::vector<std::string> notes_;
  cluster::LocalCluster cluster_;
};

/// Until the connection ends: what comes on standard input is answered on standard output.
Status serve_pool(os::Env& env, const std::string& agent_program);

}  // namespace berth::agent
