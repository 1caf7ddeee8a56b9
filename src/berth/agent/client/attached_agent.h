// An AttachedAgent is the client of an agent on this machine, which listens in its directory. Its
// connection does not break while the agent lives: when it ends, the agent is lost. One that
// refuses to talk, for a reason that may pass, is called again for a minute; then it is asked to
// end, and lost when it has, for its tasks must not go on beside the next attempts.
//
// Ownership, threads and failure as AgentClient has them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "berth/agent/client/agent_session.h"

namespace berth::agent {

class AttachedAgent : public AgentSession {
 public:
  /// Connects to the agent of a directory. Where there is none, it is lost() at once: not_found.
  static std::unique_ptr<AttachedAgent> attach(os::Env& env, const std::string& directory,
                                               const RunnerSide& side);

 protected:
  AttachedAgent(os::Env& env, std::string directory, const RunnerSide& side);
  /// Connects at once, or again later when too many wait before us.
  Status connect();
  void step_connection() override;
  std::optional<Mono> next_connection_step() const override;
  void on_broken(Error because) override { lose(std::move(because)); }
  void on_refused(Error because, bool lasts) override;

 private:
  std::string directory_;
  std::optional<Mono> connect_at_;  // too many waited before us, or it refused
  bool is_ending_ = false;          // it was asked to
  Mono give_up_at_;                 // by which it has answered
};

}  // namespace berth::agent
