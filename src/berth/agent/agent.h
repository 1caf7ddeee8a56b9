// The agent: a worker in a process of its own that owns one alloc, runs its tasks, outlives the
// runner, and tells a later runner everything that came meanwhile.
//
// It listens on a Unix socket in its directory, for one runner at a time: one of a greater epoch
// displaces it, one of a smaller is refused. Every message has a number and stands in the journal
// until the runner has acknowledged it, so that it is told again to whoever comes next, and can be
// read when the agent itself was killed.
//
// Its lease is renewed by every message of the runner, and measured by a clock that goes on while
// the machine or the agent sleeps. When it ends, an agent that may outlive its runner goes on until
// nothing runs; any other kills what runs, tells nothing more and is over. One whose journal its
// runner cannot read (it is elsewhere: `with`) then gives its alloc back, and stays for a day to be
// asked what came of its tasks; it launches none. One whose journal can be read waits for no lease:
// once its runner has gone and nothing runs it is over, and what it holds is free.
//
// DIR (0700, absolute, the agent's alone): lock, socket, journal.N, agent.json, log. When all is
// acknowledged the agent takes them along.
//
// Ownership: refers to Env. Its end kills what still runs and releases the alloc. Threads: one.
// Failure: a runner that talks nonsense is told so and cut off; a full disk keeps messages in
// memory and tasks' output in their pipes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/journal.h"
#include "berth/agent/line_stream.h"
#include "berth/agent/protocol.h"
#include "berth/exec/worker.h"
#include "berth/machine/groups.h"
#include "berth/machine/ledger.h"
#include "berth/os/env.h"

namespace berth::agent {

struct AgentOptions {
  std::string directory;
  machine::Block block;
  Duration lease = std::chrono::seconds(30);
  bool outlive = false;
  std::string ledger_directory{};  // with `alloc`
  machine::AllocId alloc{};  // handed over to this process before it is told to launch; 0: none
  machine::GroupOptions groups{};
  std::vector<std::string> ask_drivers{};  // as exec::Worker has it
  std::string with{};  // a directory that goes with the agent's when all is acknowledged
};

class Agent {
 public:
  /// Listens on return. busy: an agent lives in this directory; exists: one has lived there.
  static Result<std::unique_ptr<Agent>> open(os::Env& env, AgentOptions options);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent();

  /// It works in turns of its Env's loop until it is over. SIGTERM (Env::stop_signals) ends what
  /// runs, then the agent.
  bool over() const { return over_; }

 private:
  struct Known {  // an attempt that runs, or whose end is not acknowledged
    TaskNumber task;
    std::int64_t end_number = 0;  // of the message of its end; 0: it runs
  };
  struct Guest {
    Guest(os::Env& env, std::function<void()> wake)
        : stream(env, [this, wake = std::move(wake)](Status told) {
            status = std::move(told);
            wake();
          }) {}
    Status status;  // of its connection
    bool cut = false;
    LineStream stream;
  };

  Agent(os::Env& env, AgentOptions options, machine::Ledger ledger, os::Fd lock, os::Fd listener);
  bool lease_over() const;
  bool heard() const { return runner_ != nullptr && !lease_over(); }
  bool takes_output() const;
  void wake() { due_.no_later_than(env_->now()); }
  void step();
  void arm();
  std::optional<Mono> next_step() const;
  void accept();
  void listen_to(Guest& guest);
  Status handle(Guest& guest, Call call);
  Status welcome(Guest& guest, Hello hello);
  void start(exec::Launch launch);
  void publish(exec::FromWorker message);
  void send();
  void cut(Guest& guest, const Error& because);
  void heed_stop_signals();
  void give_up();
  void look_for_alloc();
  void consider_end();
  bool is_of_use() const;
  void retire();
  void note(std::string_view text);

  os::Env* env_;
  AgentOptions options_;
  machine::Ledger ledger_;
  os::Fd lock_, listener_;
  machine::Machine machine_;
  machine::Groups groups_;
  std::unique_ptr<exec::Worker> worker_;
  Journal journal_;
  std::vector<std::unique_ptr<Guest>> guests_;
  Guest* runner_ = nullptr;  // the one of them that was welcomed
  exec::Environment environment_;
  std::map<Token, Known> known_;
  std::set<Token> deaf_;  // output of these was dropped, and a note stands in its place
  std::vector<exec::FromWorker> messages_;
  Mono lease_ends_;
  std::int64_t epoch_ = 0;
  std::int64_t sent_to_ = 0;         // position in the journal
  std::optional<Mono> tell_by_;      // when what was published must be sent and written
  std::optional<Mono> ends_by_;      // SIGTERM came: however slow the runner
  std::optional<Mono> looks_at_;     // for its alloc, until the first runner is welcomed
  std::optional<Mono> keeps_until_;  // retired, by the boot clock: what it has to tell
  bool wants_output_ = true, has_alloc_ = true, finishing_ = false, retained_ = false;
  bool over_ = false;
  os::Timer due_{env_->loop(), [this] { step(); }};
  os::Poll called_{env_->loop(), [this] { accept(); }};
  // Whoever ends us may end our tasks at the same moment: that is no end of theirs.
  os::StopSignal stops_{env_->loop(), [this] {
                          heed_stop_signals();
                          wake();
                        }};
};

}  // namespace berth::agent
