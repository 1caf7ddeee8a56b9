// An Agent is a worker in a process of its own. It owns one alloc, runs the tasks there, outlives
// the runner that started it, and reports to the next runner everything that happened meanwhile.
//
// The agent listens on a Unix socket in its directory and serves one runner at a time: a runner
// with a greater epoch displaces the present one, a runner with a smaller epoch is refused. Every
// message has a number and stays in the journal until a runner acknowledges it. So the agent can
// send it again to the next runner, and a runner can read it when the agent itself was killed.
//
// Every message of the runner renews the agent's lease, which a clock measures that goes on while
// the machine or the agent sleeps. When the lease ends, an agent that may outlive its runner goes
// on until nothing runs; any other agent kills what runs, sends nothing more and ends. There are
// two exceptions. An agent whose runner is on another machine (`with`) and so cannot read the
// journal gives its alloc back, launches nothing more, and stays for a day to be asked how its
// tasks ended. An agent whose runner can read the journal does not wait for the lease: it ends, and
// frees what it holds, once the runner has gone and nothing runs.
//
// DIR (absolute, mode 0700, the agent's alone) holds lock, socket, journal.N, agent.json and log.
// The agent removes them when all messages are acknowledged.
//
// Ownership: it refers to the Env; its destructor kills what still runs and releases the alloc.
// Threads: one. Failure: the agent refuses a runner that sends nonsense and closes its connection;
// while the disk is full it keeps messages in memory and leaves output in the tasks' pipes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/journal.h"
#include "berth/agent/left_out_metrics.h"
#include "berth/agent/protocol/line_stream.h"
#include "berth/agent/protocol/protocol.h"
#include "berth/exec/process_worker.h"
#include "berth/machine/groups/groups.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/os/env.h"

namespace berth::agent {

struct AgentOptions {
  std::string directory;
  machine::Block block;
  Duration lease = std::chrono::seconds(30);
  bool outlive = false;
  std::string ledger_directory{};  ///< Of the ledger that knows `alloc`.
  machine::AllocId alloc{};        ///< This process owns it before the first launch comes; 0: none.
  machine::GroupOptions groups{};
  std::vector<std::string> ask_drivers{};  ///< See exec::ProcessWorker.
  /// Of orphans that this process adopts and that have no mark (exec/leftovers.h).
  exec::Unmarked unmarked_orphans = exec::Unmarked::kept;
  /// How many bytes of output the journal keeps for a later runner, and half of what it keeps of
  /// metrics too; ends are always kept.
  std::int64_t kept_most = 64 << 20;
  std::string with{};  ///< A directory that the agent removes together with its own.
};

class Agent {
 public:
  /// Returns an agent that listens. Failure: busy, where another agent lives in this directory;
  /// exists, where one has lived there.
  static Result<std::unique_ptr<Agent>> open(os::Env& env, AgentOptions options);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  /// The agent works in turns of its Env's loop until it is over. SIGTERM (Env::stop_signals) ends
  /// what runs, and then the agent.
  bool over() const { return over_; }

 private:
  struct Known {  // an attempt that runs, or whose end is not acknowledged
    TaskNumber task;
    std::int64_t end_number = 0;  // of the message of its end; 0: it runs
  };
  struct Session {  // one connection; only that of the runner is welcomed
    Session(os::Env& env, std::function<void()> wake)
        : stream(env, [this, wake = std::move(wake)](Status reported) {
            status = std::move(reported);
            wake();
          }) {}
    Status status;  // of its connection
    bool cut = false;
    LineStream stream;
  };

  Agent(os::Env& env, AgentOptions options, machine::Ledger ledger, os::Fd lock, os::Fd listener);
  bool lease_over() const;
  bool has_runner() const { return runner_ != nullptr && !lease_over(); }
  bool takes_output() const;
  void wake() { due_.no_later_than(env_->now()); }
  void step();
  void arm();
  std::optional<Mono> next_step() const;
  void accept();
  void listen_to(Session& session);
  Status handle(Session& session, Call call);
  Status welcome(Session& session, Hello hello);
  void start(exec::Launch launch);
  void publish(exec::FromWorker message);
  void send();
  void cut(Session& session, const Error& because);
  void heed_stop_signals();
  void give_up();
  void look_for_alloc();
  void consider_end();
  bool is_of_use() const;
  void retire();
  void release_alloc();
  void note(std::string_view text);

  os::Env* env_;
  AgentOptions options_;
  machine::Ledger ledger_;
  os::Fd lock_, listener_;
  machine::Machine machine_;
  machine::Groups groups_;
  std::unique_ptr<exec::ProcessWorker> worker_;
  Journal journal_;
  std::vector<std::unique_ptr<Session>> sessions_;
  Session* runner_ = nullptr;  // the session that was welcomed
  exec::Environment environment_;
  std::map<Token, Known> known_;
  std::set<Token> output_dropped_;  // a notice stands in place of their output
  LeftOutMetrics metrics_left_out_;
  std::vector<exec::FromWorker> messages_;
  Mono lease_ends_;
  Mono stepped_at_{};  // by the boot clock: what ended by then was heeded
  std::int64_t epoch_ = 0;
  std::int64_t sent_to_ = 0;         // position in the journal
  std::optional<Mono> send_by_;      // when what was published must be sent and written
  std::optional<Mono> ends_by_;      // after SIGTERM, however slow the runner is
  std::optional<Mono> looks_at_;     // when it looks for its alloc, before the first runner came
  std::optional<Mono> keeps_until_;  // by the boot clock: for so long a retired agent is asked
  bool wants_output_ = true, has_alloc_ = true, finishing_ = false, retained_ = false;
  bool releases_ = false;  // retired, and the ledger could not be told yet that the alloc is free
  bool over_ = false;
  os::Timer due_{env_->loop(), [this] { step(); }};
  os::Poll called_{env_->loop(), [this] { accept(); }};
  os::Timer accepts_again_{env_->loop(), [this] { called_.watch(listener_.number()); }};
  // Whoever ends us may end our tasks at the same moment: that is no end of theirs.
  os::StopSignal stops_{env_->loop(), [this] {
                          heed_stop_signals();
                          wake();
                        }};
};

}  // namespace berth::agent
