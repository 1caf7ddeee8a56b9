// The simulation of the scheduler's surroundings: a store that loses what was not committed, a
// runner that crashes, workers that die, freeze and come back, and messages that are lost or come
// twice. It has one thread and a fake clock; everything follows from the seed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/base/rng.h"
#include "berth/schedule/schedule.h"

namespace berth::schedule::testing {

/// Faults between the scheduler and its surroundings, each of which the simulation has to find.
enum class Plant : std::uint8_t {
  none,
  double_start,      // an attempt is launched on a second worker too
  lost_completion,   // a completion that the scheduler settled never reaches the store
  leaked_resources,  // the scheduler never hears that an attempt ended
  stale_token,       // the end of a stale attempt is taken for that of the live one
};

/// The state of a task in the store; `failed` includes stopped.
enum class State : std::uint8_t { open, done, failed };

/// A task in the store. `token` is that of its last attempt; `running`: whose end is not recorded.
struct Row {
  Task task;
  State state = State::open;
  Token token{};
  bool running = false;
  int failures = 0;
  int completions = 0;
};

/// What the runner wants recorded.
struct Change {
  enum class Kind : std::uint8_t { started, done, failed, again };
  Kind kind = Kind::started;
  TaskNumber task;
  Token token;  // none: settled without an attempt
  bool own_fault = false;
};

struct Launch {
  TaskNumber task;
  Token token;
  Token behind{};
};

/// A worker process and what it knows, whatever the runner believes of it.
struct Process {
  Resources total;
  Kind kind = Kind::primary;
  std::optional<WorkerId> known_as;  // to the runner that lives now
  bool frozen = false;
  bool dead = false;
  bool closed = false;
  Mono lease_ends;
  std::deque<Launch> inbox;
  std::deque<Token> cancels;
  std::map<Token, TaskNumber> running;
  std::vector<Launch> waiting;  // each for the end of another
  std::map<Token, std::pair<TaskNumber, Verdict>> unacknowledged;
  std::set<Token> seen;
};

struct Figures {
  std::int64_t events = 0, starts = 0, done = 0, stale = 0, crashes = 0, losses = 0, adopted = 0,
               holds = 0, cached = 0, freed = 0, ahead = 0, given_back = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Plant plant);

  /// What broke, or nothing. `figures` is added to.
  std::string run(int events, Figures& figures);

 private:
  struct Live {
    TaskNumber task;
    WorkerId worker;
    Token behind{};
  };

  void broke(const std::string& what);
  bool chance(int percent) { return rng_.below(100) < static_cast<std::uint64_t>(percent); }
  Row& row(TaskNumber task) { return rows_.at(static_cast<std::size_t>(task.value - 1)); }
  State& view(TaskNumber task) { return view_.at(static_cast<std::size_t>(task.value - 1)); }
  void new_row();

  // The runner: simulation_runner_test.cc.
  void recover();
  void crash();
  void absorb();
  void send_ahead();
  std::int64_t side_by_side() const;
  void on_start(const StartAttempt& start);
  bool behind_hold(TaskNumber task) const;
  void on_settled(const TaskSettled& settled);
  void free_closed_stealers();
  void end(TaskNumber task, Token token, Verdict verdict);
  void add_tasks(std::size_t first);
  void answer(bool proceed);
  void attach(Process& process);
  void note_adopted(const std::vector<Earlier>& earlier, const Process& process);
  Token last_in_line(TaskNumber task, WorkerId worker);
  void lose_expired();
  void keepalive(Process& process);
  void commit(bool may_fail);
  void record(const Change& change);
  void acknowledge();

  // The world.
  void step();
  void rent(const Resources& total, Kind kind);
  void deliver(Process& process);
  void start(Process& process, const Launch& launch);
  void start_waiting(Process& process);
  void give_back(Process& process);
  void work(Process& process, bool well);
  void report(Process& process);
  void finish(Process& process, TaskNumber task, Token token, Verdict verdict);
  void drain();
  void check();
  void check_hold();
  void check_end();

  Rng rng_;
  Plant plant_;
  Mono now_{};
  std::string broken_;
  Figures figures_;
  std::uint64_t widths_ = 4;  // how many cores a task may ask for
  std::vector<std::unique_ptr<Process>> processes_;
  std::map<Token, Verdict> witness_;  // attempts that came to their end, and how

  std::vector<Row> rows_;  // durable
  std::int64_t epoch_ = 0;

  Options options_;  // the runner's memory from here on
  std::optional<Scheduler> scheduler_;
  std::vector<Effect> effects_;
  std::map<Token, Live> live_;
  std::map<WorkerId, Resources> used_;
  std::vector<State> view_;
  std::vector<TaskNumber> gated_;  // that nobody has answered yet
  std::set<Token> lost_;  // attempts of lost workers, whose own end the scheduler never hears
  std::vector<Change> batch_;
  Token last_token_;
  std::optional<BackfillHold> hold_;  // after the last event
  std::vector<Token> backfilled_;     // started since then on its worker by tasks behind its own
  std::int64_t workers_made_ = 0;
  bool stopping_ = false;  // or halted by a failure
};

}  // namespace berth::schedule::testing
