// Drives one run to its end: takes it over, leases what its tasks need from the machine, runs them,
// and records every attempt, metric and completion durably before it is shown.
//
// Threads: one. Failure: an Error means that the run could not go on (its store failed, it is
// driven by another process); what was recorded stays, and `berth resume` goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/experiment/program.h"
#include "berth/run/site.h"

namespace berth::run {

struct Best {
  std::string label;
  double value = 0;
};

/// What is durably known of the run, for whoever follows it.
struct Progress {
  std::string run;
  store::Counts counts;
  std::int64_t total = 0;
  std::int64_t finished_before = 0;  // by earlier runners
  struct Step {
    std::string name;
    store::Counts counts;
  };
  std::vector<Step> steps;  // of a flow
  std::optional<Best> best;
  std::int64_t workers = 0;
  std::string waiting_for;                         // why nothing runs; "" when something does
  std::string doing;                               // what takes long beside the tasks; "" mostly
  std::optional<Mono> waiting_since, doing_since;  // where that is known
  Mono began;                                      // when this runner took over
};

struct TaskEnd {
  std::string label;
  store::TaskState state = store::TaskState::done;
  exec::Cause cause = exec::Cause::ok;
  std::optional<int> exit_code;
  int signal = 0;
  std::string detail;
  std::optional<double> score;
  bool again = false;  // it will be tried again
};

/// A trial that somebody else carries out waits for what came of it.
struct Question {
  std::string label;
  std::string command;               // for a shell; of a run that has none, its parameters
  std::string directory;             // where it is meant to start
  std::vector<std::string> metrics;  // what is asked for
  /// Takes the answer as run/passive.h says; invalid: it is none.
  std::function<Status(std::string_view told)> answer;
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_progress(const Progress& progress, Mono now) = 0;
  virtual void on_task_end(const TaskEnd& end) = 0;
  virtual void on_output(const exec::Output& output) = 0;
  virtual void on_note(const std::string& note) = 0;
  virtual void on_question(const Question&) {}

  // Whoever shows output may be slower than who makes it, and must never hold up the run.
  /// False while it has enough: the tasks' output then stays in their pipes.
  virtual bool wants_output() { return true; }
  /// What it waits for to show more; flush() is called when something came.
  virtual void watch(std::vector<os::Watch>&) {}
  virtual void flush() {}
};

/// Checks what needs no record yet: the program exists and is executable, and one task of it fits
/// the empty machine. `file` names it in errors; "" for a command line. not_found, invalid,
/// impossible.
Status check_program(Site& site, const experiment::Program& program, const std::string& directory,
                     const std::string& file);

/// Where several trials are to share a GPU: the memory that each then asks for. impossible: there
/// is no such GPU.
Status divide_gpus(Site& site, experiment::Program& program);

/// Submits the run with all its trials, durably. `directory`: absolute, where its tasks start.
Result<store::RunRecord> submit(Site& site, const experiment::Program& program,
                                const std::string& directory);

/// Drives it until it is done, failed or stopped (two stop signals: at once). Returns the final
/// record. `only`: starts none but these, unless it is empty. busy: another process drives it.
Result<store::RunRecord> drive(Site& site, const std::string& run_name, Observer& observer,
                               const std::vector<TaskNumber>& only = {});

/// Makes the failed tasks of a run that does not run waiting again, or all that have ended, their
/// retries as at first; which they were. drive() goes on with them. `spec_json`, unless it is
/// empty, is what the run is asked for from now on. busy: it runs.
Result<std::vector<TaskNumber>> reopen(Site& site, const std::string& run_name, bool all,
                                       const std::string& spec_json = "");

/// Forgets a run that does not run: its record, output and files. busy: it runs, or may do so on a
/// machine that does not answer.
Status remove(Site& site, const std::string& run_name);
/// Directories of runs that have no record, as a remove() that was cut off leaves them.
Result<int> remove_strays(Site& site);

/// Ends processes of this run whose runner or worker is dead: of those that carry its directory in
/// BERTH_RUN_DIR the ones that `orphaned` says yes to, by the attempt that each belongs to, if to
/// any. Returns how many.
Result<int> end_orphans(os::Env& env, const std::string& run_directory,
                        const std::function<bool(std::optional<Token>)>& orphaned);
/// Ends the agents of a run that does not run, and all that they run, where they answer.
Status end_agents(Site& site, const store::RunRecord& run);
/// The same, with runners kept out. busy: it runs.
Status end_what_was_left(Site& site, const std::string& run_name);

/// A machine elsewhere that did not answer when a run ended, and the tasks that may still run
/// there.
struct MayRun {
  std::string machine;
  std::vector<std::string> tasks;  // labels, of those that are known
  Duration time_left;              // after which nothing of the run can
};
Result<std::vector<MayRun>> may_run_elsewhere(Site& site, const store::RunRecord& run);
std::string to_text(const MayRun& one, const std::string& run);

}  // namespace berth::run
