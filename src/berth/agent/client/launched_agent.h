// A LaunchedAgent is the client of an agent that this process starts on this machine. A short-lived
// launcher starts it in a session of its own; once that says that the agent listens, the alloc is
// handed over to the agent, and the client attaches to it.
//
// Ownership, threads and failure as AgentClient has them. The error of starting is lost().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "berth/agent/client/attached_agent.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::agent {

struct StartOptions {
  std::string program;    ///< agent_program()
  std::string directory;  ///< Absolute, the agent's alone; it is made (0700) if it is absent.
  machine::Block block;
  Duration lease = std::chrono::seconds(30);
  bool outlive = true;             ///< It goes on without a runner until nothing runs.
  std::string ledger_directory{};  ///< With `alloc`.
  machine::AllocId alloc{};        ///< Of this process: it is handed over to the agent; 0: none.
};

class LaunchedAgent final : public AttachedAgent {
 public:
  /// Starts an agent and connects to it, both in later turns.
  static std::unique_ptr<LaunchedAgent> start(os::Env& env, StartOptions options,
                                              const RunnerSide& side);

  void lose(Error because) override;
  bool has_alloc() const override { return has_alloc_; }

 private:
  LaunchedAgent(os::Env& env, StartOptions options, const RunnerSide& side);
  void on_launched();
  Status begin(std::string_view said);

  const StartOptions options_;
  std::optional<os::Child> launcher_;  // while it starts the agent
  bool has_alloc_;
  os::Poll launched_{env_.loop(), [this] {
                       on_launched();
                       arm();
                     }};
};

}  // namespace berth::agent
