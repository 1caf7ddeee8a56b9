// A runner's end of an agent: a worker that lives on in a process of its own.
//
// Start one, or attach to one that an earlier runner left; then use it as any Workplace. What was
// told before it is ready waits. The end of a Link leaves the agent and its tasks as they are.
//
//   auto link = Link::attach(env, directory, {epoch, environment});
//   settle(env, links, until);                    // each is ready or lost
//   store.take_over(…, tokens of link->earlier());
//   scheduler.joined({.earlier = link->earlier(), …});
//   loop: watch, wait, turn, store what came, acknowledge
//
// The numbered messages of the agent come whole and in order: what an earlier runner did not
// acknowledge first. An attempt may so be heard of again that is recorded already: its token tells.
//
// Ownership: refers to Env. Threads: one. Failure: as Workplace has it; lost() is stale where a
// later runner displaced this one or the agent's lease is over, not_found where there is no agent
// (see read_journal()), busy where there is one that does not listen.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/agent/line_stream.h"
#include "berth/agent/protocol.h"
#include "berth/exec/workplace.h"
#include "berth/machine/ledger.h"
#include "berth/schedule/schedule.h"

namespace berth::agent {

/// Of the run as it is now.
struct RunnerSide {
  std::int64_t epoch = 0;         // of this runner: greater than that of any before
  exec::Environment environment;  // that all launches share, more or less
};

struct StartOptions {
  std::string program;    // agent_program()
  std::string directory;  // absolute, the agent's alone, made (0700) if it is absent
  machine::Block block;
  Duration lease = std::chrono::seconds(30);
  bool outlive = true;             // go on without a runner until nothing runs
  std::string ledger_directory{};  // with `alloc`
  machine::AllocId alloc{};        // of this process: handed over to the agent; 0: none
};

class Link final : public exec::Workplace {
 public:
  /// Starts an agent and connects to it, both in later turns. The error of starting is lost().
  static std::unique_ptr<Link> start(os::Env& env, StartOptions options, RunnerSide side);
  /// To the agent of a directory. Where there is none, it is lost() at once: not_found.
  static std::unique_ptr<Link> attach(os::Env& env, const std::string& directory, RunnerSide side);
  /// To an agent behind another door (ssh): one descriptor, both ways, non-blocking.
  static std::unique_ptr<Link> over(os::Env& env, os::Fd fd, RunnerSide side);

  void tell(const exec::ToWorker& message) override;
  void watch(std::vector<os::Watch>& watches, bool read_output = true) override;
  std::optional<Mono> deadline() const override;
  void turn(std::span<const os::Watch> watches, std::vector<exec::FromWorker>& messages) override;
  bool idle() const override { return outstanding_.empty() && received_.empty(); }
  void acknowledge() override;
  std::optional<Error> lost() const override { return lost_; }

  /// The agent has answered: what follows is known.
  bool ready() const { return welcome_.has_value(); }
  const Welcome& agent() const { return *welcome_; }
  /// The alloc is the agent's, and goes with it; before, it is still this process's.
  bool has_alloc() const { return has_alloc_; }
  /// Attempts that it runs, or whose end will now come.
  std::vector<schedule::Earlier> earlier() const;
  /// The agent frees its alloc and ends, once idle and acknowledged. The Link may go at once.
  void finish() override;
  void retain(Duration time) override;

 private:
  explicit Link(os::Env& env, RunnerSide side);
  friend void settle(os::Env& env, std::span<const std::unique_ptr<Link>> links, Mono until);
  void launch(const exec::Launch& launch);
  void progress(std::span<const os::Watch> watches);
  void turn_launcher(std::span<const os::Watch> watches);
  Status begin(std::string_view line);
  Status connect();
  Status hear(Answer answer);
  Status hear_all();
  void send_due();
  void say_last(const Call& call);
  void lose(Error because);

  os::Env* env_;
  RunnerSide side_;
  std::unordered_map<std::string, std::size_t> places_;  // in its environment, by name
  StartOptions options_;
  std::optional<os::Child> launcher_;  // while it starts the agent
  std::string said_, complained_;      // by the launcher
  LineStream stream_;
  std::optional<Welcome> welcome_;
  std::optional<Error> lost_;
  std::vector<exec::FromWorker> received_;
  std::set<Token> outstanding_;  // launched, or taken over, and their end not handed out
  std::int64_t next_ = 1;        // number of the next message
  std::int64_t handed_out_ = 0, acknowledged_ = 0, acknowledged_sent_ = 0;
  Mono heard_at_, keepalive_at_;    // by the boot clock
  Mono give_up_at_;                 // starting takes no longer
  std::optional<Mono> connect_at_;  // too many waited before us
  bool output_wanted_ = true, output_wished_ = true, has_alloc_ = true;
};

/// Turns the links, without handing anything out, until each is ready or lost, or `until`: those
/// that are neither then are lost. For a runner's start.
void settle(os::Env& env, std::span<const std::unique_ptr<Link>> links, Mono until);

/// berth-agent beside the running program. not_found, io.
Result<std::string> agent_program(os::Env& env);

/// For an agent that is gone: what it left is no longer needed. busy: it lives.
Status forget_agent(os::Env& env, const std::string& directory);

}  // namespace berth::agent
