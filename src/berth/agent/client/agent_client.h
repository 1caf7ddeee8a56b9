// An agent client is a runner's end of an agent: of a worker that lives on in a process of its own.
// It is used as any Worker. There are three, by how the agent is reached:
//
//   LaunchedAgent   this process starts the agent on this machine, and connects to it
//   AttachedAgent   an earlier runner started it; its directory tells where it listens
//   RemoteAgent     it is behind a connection that may be cut, and is dialled again
//
// What is sent before an agent has answered waits. The end of a client leaves the agent and its
// tasks as they are. What they have in common is AgentSession (agent_session.h).
//
//   auto client = AttachedAgent::attach(env, directory, {epoch, environment});
//   settle(env, clients, until);                  // each is ready or lost
//   store.take_over(…, tokens of client->earlier());
//   scheduler.joined({.earlier = client->earlier(), …});
//   loop: turn the Env's loop, take and store what came, acknowledge
//
// The numbered messages of the agent come whole and in order: what an earlier runner did not
// acknowledge first. An attempt may so be reported again that is recorded already: its token tells.
//
// Ownership: a client refers to its Env. Threads: one. Failure: as Worker has it; lost() is
// stale where a later runner displaced this one or the agent's lease is over, not_found where there
// is no agent (see read_journal()), busy where there is one that does not listen.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/agent/protocol/protocol.h"
#include "berth/exec/worker.h"
#include "berth/schedule/schedule.h"

namespace berth::agent {

/// What a client tells the agent about the run as it is now.
struct RunnerSide {
  std::int64_t epoch = 0;         ///< Of this runner: it is greater than that of any before.
  exec::Environment environment;  ///< Of all launches.
  bool beside = false;            ///< It is added to the agent's own, not put in its place.
};

class AgentClient : public exec::Worker {
 public:
  /// The agent has answered: what follows is known.
  virtual bool ready() const = 0;
  virtual const Welcome& agent() const = 0;
  virtual void lose(Error because) = 0;
  /// The alloc is the agent's, and goes with it; before, it is still this process's.
  virtual bool has_alloc() const { return true; }
  bool queues() const override { return ready() && agent().revision >= kQueues; }
  /// Attempts that the agent runs, or whose end will now come.
  std::vector<schedule::Earlier> earlier() const;
};

/// Turns the Env's loop once, until `until` at most. Returns whether some of the clients are
/// neither ready nor lost.
bool settle_round(os::Env& env, std::span<AgentClient* const> clients, Mono until);
/// Turns the loop until each is ready or lost, or `until`: those that are neither then are lost.
void settle(os::Env& env, std::span<const std::unique_ptr<AgentClient>> clients, Mono until);

/// The path of the berth-agent beside the running program. not_found, io.
Result<std::string> agent_program(os::Env& env);

/// Removes what an agent that is gone has left and nobody needs any longer. busy: it lives.
Status forget_agent(os::Env& env, const std::string& directory);

}  // namespace berth::agent
