// An AgentSession is what every agent client has, however it reaches its agent: the worker's
// interface, numbered messages and their acknowledgement, keepalives, and when silence means that
// the agent can run nothing any more. How there comes to be a connection, and what it means that
// one breaks, is said by those that derive from it.
//
// Ownership, threads and failure as AgentClient has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/agent/client/agent_client.h"
#include "berth/agent/client/inbox.h"
#include "berth/agent/client/outbox.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/os/loop.h"

namespace berth::agent {

class AgentSession : public AgentClient {
 public:
  void send(const exec::ToWorker& message) override;
  void set_reading(bool reads_output) override;
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  std::int64_t last_taken() const override { return inbox_.last_taken(); }
  bool idle() const override { return inbox_.idle(); }
  void acknowledge() override { inbox_.acknowledge(); }
  std::optional<Error> lost() const override { return lost_; }
  bool ready() const override { return welcome_.has_value(); }
  const Welcome& agent() const override { return *welcome_; }
  void lose(Error because) override;
  /// The agent frees its alloc and ends, once idle and acknowledged. The client may go at once.
  void finish() override { send_last(Finish{}); }
  void retain(Duration time) override { send_last(Retain{time}); }

 protected:
  AgentSession(os::Env& env, const RunnerSide& side);

  // What a derived class says. All times are by the boot clock: a lease goes on in a suspended
  // machine.

  /// The session has something to do, at next_connection_step() or before: this opens the stream,
  /// or calls exchange() on one that is open.
  virtual void step_connection() = 0;
  virtual std::optional<Mono> next_connection_step() const = 0;
  /// The stream can be used no longer: this calls lose(), or disconnect() and then connects again.
  virtual void on_broken(Error because) = 0;
  virtual void on_welcome() {}
  /// The agent refuses to talk; `lasts`: it has done so for a minute and told nothing meanwhile.
  /// Where the reason may pass this connects again later; else it calls lose().
  virtual void on_refused(Error because, bool lasts) = 0;
  /// Something is about to be sent: the agent may read it from now on.
  virtual void before_write() {}
  /// Returns when an agent that stays silent cannot run anything any more; nullopt: never.
  virtual std::optional<Mono> lost_at() const;

  // What it is given for that.

  /// Sends what can be sent at once, and takes what has come.
  void exchange();
  Status write();
  /// Closes the stream and forgets what was on its way; the next one begins with our greeting.
  void disconnect();
  /// Has the session take a step in the next turn of the loop.
  void wake() { due_.no_later_than(env_.now()); }
  /// Has it take one when something is due. It is called after each change from outside.
  void arm();

  os::Env& env_;
  LineStream stream_;
  Inbox inbox_;
  Mono received_at_;  ///< When the agent's last word came.

 private:
  void step();
  std::optional<Mono> next_step() const;
  void send_last(const Call& call);
  void send_due();
  void refuse(Error because);
  Status receive(Answer answer);
  Status receive_welcome(Welcome welcome);

  const std::string hello_;
  Status stream_status_;  // what the stream told last
  Outbox outbox_{[this](std::string_view line) { stream_.send_line(line); }};
  std::optional<Welcome> welcome_;
  std::optional<Error> lost_;
  std::optional<Mono> refused_since_;  // and has told nothing since
  os::Timer due_{env_.loop(), [this] { step(); }};
};

}  // namespace berth::agent
