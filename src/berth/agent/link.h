// A runner's end of an agent: a worker that lives on in a process of its own.
//
// Start one, or attach to one that an earlier runner left; then use it as any Workplace. What was
// told before it is ready waits. The end of a Link leaves the agent and its tasks as they are.
//
//   auto link = Link::attach(env, directory, {epoch, environment});
//   settle(env, links, until);                    // each is ready or lost
//   store.take_over(…, tokens of link->earlier());
//   scheduler.joined({.earlier = link->earlier(), …});
//   loop: turn the Env's loop, take and store what came, acknowledge
//
// The numbered messages of the agent come whole and in order: what an earlier runner did not
// acknowledge first. An attempt may so be heard of again that is recorded already: its token tells.
//
// Ownership: refers to Env. Threads: one. Failure: as Workplace has it; lost() is stale where a
// later runner displaced this one or the agent's lease is over, not_found where there is no agent
// (see read_journal()), busy where there is one that does not listen.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/agent/line.h"
#include "berth/agent/line_stream.h"
#include "berth/agent/protocol.h"
#include "berth/exec/unbegun.h"
#include "berth/exec/workplace.h"
#include "berth/machine/ledger.h"
#include "berth/schedule/schedule.h"

namespace berth::agent {

/// Of the run as it is now.
struct RunnerSide {
  std::int64_t epoch = 0;         // of this runner: greater than that of any before
  exec::Environment environment;  // of all launches
  bool beside = false;            // beside the agent's own, not in place of it
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

/// A worker apart: what a later runner can attach to.
class Attached : public exec::Workplace {
 public:
  /// It has answered: what follows is known.
  virtual bool ready() const = 0;
  virtual const Welcome& agent() const = 0;
  virtual void lose(Error because) = 0;
  /// The alloc is the agent's, and goes with it; before, it is still this process's.
  virtual bool has_alloc() const { return true; }
  /// Attempts that it runs, or whose end will now come.
  std::vector<schedule::Earlier> earlier() const;
};

class Link final : public Attached {
 public:
  static constexpr int kKeepalivesALease = 3;
  /// So long after the last word a connection that seems to stand is given up: of three keepalives
  /// a lease one at least was not answered.
  static constexpr int kSilencesALease = 2;

  /// Starts an agent and connects to it, both in later turns. The error of starting is lost().
  static std::unique_ptr<Link> start(os::Env& env, StartOptions options, RunnerSide side);
  /// To the agent of a directory. Where there is none, it is lost() at once: not_found.
  static std::unique_ptr<Link> attach(os::Env& env, const std::string& directory, RunnerSide side);
  /// To an agent behind a command that ends in `berth-agent stdio DIR`. A connection that breaks,
  /// or falls silent, is made again until the agent was silent for its whole lease, or for
  /// `patience` before it has answered and where it outlives its lease; what a broken one swallowed
  /// is said again. Where something was said to it since it was heard, it is lost two leases
  /// (before it has answered: of `lease`) after that: it may be read until the first has ended.
  /// `on_contact` is called before something is said, once in a third of a lease at least: whoever
  /// records when that was knows how long the agent's lease may last.
  static std::unique_ptr<Link> through(os::Env& env, LineOptions line, Duration patience,
                                       Duration lease, RunnerSide side,
                                       std::function<void()> on_contact = {});

  void tell(const exec::ToWorker& message) override;
  void set_reading(bool reads_output) override;
  void take_messages(std::vector<exec::FromWorker>& messages) override;
  bool idle() const override { return outstanding_.empty() && received_.empty(); }
  void acknowledge() override;
  std::optional<Error> lost() const override { return lost_; }

  bool ready() const override { return welcome_.has_value(); }
  bool queues() const override { return welcome_ && welcome_->revision >= kQueues; }
  const Welcome& agent() const override { return *welcome_; }
  void lose(Error because) override;
  bool has_alloc() const override { return has_alloc_; }
  /// The agent frees its alloc and ends, once idle and acknowledged. The Link may go at once.
  void finish() override;
  void retain(Duration time) override;
  /// The end of an attempt, just handed out, is not acknowledged before it is let go of.
  void hold(Token token) {
    if (const auto end = ends_.find(token); end != ends_.end()) held_.insert(*end);
  }
  void let_go(Token token) { held_.erase(token); }
  std::optional<Error> cut() const override { return cut_; }

 private:
  explicit Link(os::Env& env, RunnerSide side);
  struct Sent {
    TaskNumber task;
    std::int64_t revision = 0;  // that the agent needs for it
    std::string line;
  };
  void launch(exec::Launch launch);
  bool say_launch(Token token, const Sent& launch);
  void refuse(TaskNumber task, Token token, std::string detail);
  void wake() { due_.no_later_than(env_->now()); }
  void step();
  void arm();
  std::optional<Mono> next_step() const;
  void on_launched();
  Status begin(std::string_view line);
  Status connect();
  void greet();
  void dial();
  void redial(Error because);
  void step_line();
  void step_stream();
  void say(std::string line);
  Status welcome(Welcome welcome);
  void say_again();
  std::optional<Duration> patience() const;
  std::optional<Mono> lost_at() const;
  Status hear(Answer answer);
  Status hear_all();
  void send_due();
  void say_last(const Call& call);
  void note_contact();
  void note_words();

  os::Env* env_;
  RunnerSide side_;
  StartOptions options_;
  std::optional<os::Child> launcher_;  // while it starts the agent
  std::string said_, complained_;      // by the launcher
  std::optional<LineOptions> door_;    // of one through a line
  std::unique_ptr<Line> line_;
  std::function<void()> on_contact_;
  std::optional<Mono> contact_noted_at_;
  std::optional<Mono> dial_at_;
  Duration patience_{}, lease_{};  // lease_: before its welcome
  std::optional<Mono> said_at_;    // on a line
  int dials_ = 0;                  // in vain
  std::optional<Error> cut_;
  std::map<Token, Sent>
      launches_;  // that wait for the welcome, or a broken line may have swallowed
  std::set<Token> cancelled_;
  bool abandoned_ = false;
  exec::Unbegun unbegun_;
  std::optional<Call> last_;  // what was said last of all
  LineStream stream_;
  Status stream_status_;  // what the stream told last
  std::optional<Welcome> welcome_;
  bool welcomed_ = false;  // on this connection
  std::optional<Error> lost_;
  std::vector<exec::FromWorker> received_;
  std::set<Token> outstanding_;         // launched, or taken over, and their end not handed out
  std::int64_t next_ = 1;               // number of the next message
  std::map<Token, std::int64_t> ends_;  // numbers of those that are not acknowledged
  std::map<Token, std::int64_t> held_;
  std::int64_t handed_out_ = 0, acknowledged_ = 0, acknowledged_sent_ = 0;
  Mono heard_at_, keepalive_at_;    // by the boot clock
  Mono opened_at_;                  // the connection
  Mono give_up_at_;                 // starting takes no longer
  std::optional<Mono> connect_at_;  // too many waited before us
  bool output_wanted_ = true, output_wished_ = true, has_alloc_ = true;
  os::Timer due_{env_->loop(), [this] { step(); }};
  os::Poll launched_{env_->loop(), [this] {
                       on_launched();
                       arm();
                     }};
};

/// Turns the Env's loop once, until `until` at most. Returns whether some of the links are neither
/// ready nor lost.
bool settle_round(os::Env& env, std::span<Attached* const> links, Mono until);
/// The same until each is ready or lost, or `until`: those that are neither then are lost. For a
/// runner's start.
void settle(os::Env& env, std::span<Attached* const> links, Mono until);
void settle(os::Env& env, std::span<const std::unique_ptr<Link>> links, Mono until);

/// berth-agent beside the running program. not_found, io.
Result<std::string> agent_program(os::Env& env);

/// For an agent that is gone: what it left is no longer needed. busy: it lives.
Status forget_agent(os::Env& env, const std::string& directory);

}  // namespace berth::agent
