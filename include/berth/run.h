// Runs: commands, experiments and flows, which Berth carries out durably. A run is driven by a
// process of its own, the `berth` program, which outlives the one that submitted it; here it is
// submitted, followed, stopped and gone on with.
//
//   auto runs = berth::Runs::open();
//   auto name = runs->submit_file("sweep.yaml");            // "digits-3": recorded, and started
//   auto run = runs->wait(*name);                           // until it has ended
//   for (auto& task : *runs->tasks(*name)) std::cout << task.label << ": " << task.state << '\n';
//
// Units: as resources.h; times are since 1970 UTC. Durability: a run that submit() named is
// recorded, and is not lost (docs/contract.md). Ownership: values are the caller's; closing a Runs
// ends no run. Threads: a Runs belongs to one thread at a time. Errors: those of the store;
// invalid, not_found and impossible of what is submitted, in the words of `berth run`; not_found,
// where there is no `berth`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/error.h"
#include "berth/resources.h"

namespace berth {

struct RunsOptions {
  std::string state_directory{};  ///< "": where `berth` has its runs (BERTH_DB, XDG_STATE_HOME).
  std::string program{};          ///< The `berth` to use; "": $BERTH_BIN, or the one in PATH.
};

/// One command as a run of its own.
struct Command {
  std::vector<std::string> argv;
  std::string name{};       ///< Of the run; "": that of the program.
  std::string directory{};  ///< Where it starts; "": the working directory.
  Resources resources{};    ///< Empty: one core.
  int retries = 0;
  std::chrono::milliseconds timeout{};                             ///< Of each attempt; 0: none.
  std::vector<std::pair<std::string, std::string>> environment{};  ///< Over that of this process.
};

/// How many tasks are in each state; they add up to the tasks.
struct TaskCounts {
  std::int64_t waiting = 0, running = 0, done = 0, cached = 0, skipped = 0, failed = 0, stopped = 0;
};

struct Run {
  std::string name;  ///< "digits-3"
  std::string kind;  ///< "command", "experiment", "flow", "server" or "study".
  /// "waiting", "running", "done", "failed", "stopped", or "interrupted": its runner died, and
  /// resume() goes on with it.
  std::string state;
  std::string error;  ///< Why it failed or cannot go on; "" otherwise.
  TaskCounts counts;
  std::chrono::milliseconds created{};
  std::optional<std::chrono::milliseconds> ended{};

  bool goes_on() const { return state == "waiting" || state == "running"; }
};

struct Task {
  std::string label;  ///< "17" of an experiment, "map/A" of a flow.
  std::string state;  ///< As Run::state, or "cached" or "skipped".
  std::int64_t attempts = 0;
  std::optional<int> exit_code{};  ///< Of the last attempt that exited by itself.
  std::vector<std::pair<std::string, std::string>> params{};
  std::vector<std::pair<std::string, double>> metrics{};  ///< The last value of each.
};

/// Is told what is durable of a run that is followed. Its calls come from within follow().
class BERTH_EXPORT RunObserver {
 public:
  virtual ~RunObserver();
  /// The state of the run or of its tasks has changed.
  virtual void on_progress(const Run& /*run*/) {}
  /// The task has ended for now: it is done, cached, skipped, failed or stopped.
  virtual void on_task_end(const Task& /*task*/) {}
  /// Bytes that a task printed, in the order of its stream; not cut at lines.
  virtual void on_output(const std::string& /*task*/, bool /*is_error*/,
                         std::string_view /*bytes*/) {}
  /// Asked about ten times a second; false ends follow(), not the run.
  virtual bool goes_on() { return true; }
};

class BERTH_EXPORT Runs {
 public:
  static Result<Runs> open(const RunsOptions& options = {});
  Runs(Runs&&) noexcept;
  Runs& operator=(Runs&&) noexcept;
  ~Runs();

  /// Records the run, starts its runner, and returns its name.
  Result<std::string> submit(const Command& command);
  /// The same of an experiment's or a flow's file; `options` are those of `berth run FILE`, such as
  /// {"--set", "lr=0.1"} or {"--parallel", "4"}.
  Result<std::string> submit_file(const std::string& file,
                                  const std::vector<std::string>& options = {});

  Result<std::vector<Run>> list();  ///< Oldest first.
  Result<Run> find(const std::string& name);
  Result<std::vector<Task>> tasks(const std::string& name);
  /// All that a task printed so far on one of its streams.
  Result<std::string> output(const std::string& name, const std::string& task,
                             bool is_error = false);

  /// Tells the observer what has happened from the run's begin on and what happens until it ends,
  /// or until the observer has enough. Returns the run as it is then.
  Result<Run> follow(const std::string& name, RunObserver& observer);
  /// Waits until the run has ended, or `most` has passed; 0: however long that takes.
  Result<Run> wait(const std::string& name, std::chrono::milliseconds most = {});

  /// Ends what runs, so that it can be gone on with; returns once that is recorded.
  Status stop(const std::string& name);
  /// Goes on with a run that was stopped or interrupted.
  Status resume(const std::string& name);
  /// Removes its record, output and files. busy: it is driven.
  Status remove(const std::string& name);

 private:
  struct State;
  explicit Runs(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth
