// A RemoteAgent is the client of an agent behind a command that ends in `berth-agent stdio DIR`
// (connection.h). A connection that breaks, or falls silent, is dialled again, with growing and
// jittered pauses, until the agent was silent for its whole lease, or for `timeout` before it has
// answered and where it outlives its lease. What a broken one swallowed is said again: tokens and
// numbers make what is said twice count once.
//
// One that refuses to talk, for a reason that may pass, is dialled again for a minute, and then
// left to its lease.
//
// Where something was said to the agent since it was heard, it is lost two leases after that: it
// may be read until the first has ended, and renews it.
//
// Ownership, threads and failure as AgentClient has them.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "berth/agent/client/agent_session.h"
#include "berth/agent/protocol/connection.h"

namespace berth::agent {

class RemoteAgent final : public AgentSession {
 public:
  /// So long after the last word a connection that seems to stand is given up: of the keepalives of
  /// a lease one at least was not answered.
  static constexpr int kSilencesALease = 2;

  /// `lease` is taken for the agent's before it has answered. `on_contact` is called before
  /// something is said, once in a third of a lease at least: whoever records when that was knows
  /// how long the agent's lease may last.
  static std::unique_ptr<RemoteAgent> through(os::Env& env, ConnectionOptions line,
                                              Duration timeout, Duration lease,
                                              const RunnerSide& side,
                                              std::function<void()> on_contact = {});
  ~RemoteAgent() override { stream_.close(); }  // before the command that carries it is ended

  std::optional<Error> cut() const override { return cut_; }
  void lose(Error because) override;
  /// The end of an attempt, just handed out, is not acknowledged before it is let go of.
  void hold(Token token) { inbox_.hold(token); }
  void let_go(Token token) { inbox_.let_go(token); }

 private:
  RemoteAgent(os::Env& env, ConnectionOptions line, Duration timeout, Duration lease,
              const RunnerSide& side, std::function<void()> on_contact);
  void step_connection() override;
  std::optional<Mono> next_connection_step() const override;
  void on_broken(Error because) override;
  void on_welcome() override;
  void on_refused(Error because, bool lasts) override;
  void before_write() override;
  std::optional<Mono> lost_at() const override;
  void dial();
  void open();
  /// How long the agent may be silent.
  Duration timeout() const;
  Duration lease() const { return ready() ? agent().lease : lease_; }
  /// Until when a connection may be silent.
  Mono silent_until() const;

  const ConnectionOptions options_;
  const Duration timeout_, lease_;
  const std::function<void()> on_contact_;
  std::optional<Mono> contact_noted_at_;
  std::unique_ptr<Connection> connection_;
  Mono opened_at_;
  std::optional<Mono> dial_at_;
  int dials_ = 0;  // in vain
  std::optional<Mono> sent_at_;
  std::optional<Error> cut_;
  bool is_left_ = false;  // it is not dialled any more, and lost when its lease is over
};

}  // namespace berth::agent
