// A runner drives one run to its end: it takes the run over, leases what its tasks need, runs them,
// and records every attempt, metric and completion durably before it shows them. The functions here
// submit runs, drive them, open them again and remove them.
//
// Threads: one. Failure: an Error means that the run could not go on (its store failed, or another
// process drives it); what was recorded stays, and `berth resume` goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "berth/exec/messages.h"
#include "berth/experiment/program.h"
#include "berth/run/state/context.h"

namespace berth::run {

/// A trial that is done, and among those with the best scores.
struct Leader {
  std::string label;
  double score = 0;
  std::int64_t number = 0;
  experiment::Values params;
};

/// What is durably known of the run, for whoever follows it.
struct Progress {
  std::string run;
  store::Counts counts;
  std::int64_t total = 0;            ///< Also what a search has yet to propose, as far as is known.
  std::int64_t finished_before = 0;  ///< Tasks that earlier runners have finished.
  struct Step {
    std::string name;
    store::Counts counts;
  };
  std::vector<Step> steps;  ///< Of a flow.
  static constexpr std::size_t kLeaders = 5;
  std::vector<Leader> leaders;  ///< The best first.
  std::int64_t workers = 0;
  std::string waiting_for;  ///< Why nothing runs; "" when something does.
  std::string doing;        ///< What takes long beside the tasks; "" when there is nothing.
  std::optional<Mono> waiting_since, doing_since;  ///< Where that is known.
  std::string how_far;  ///< What is waited for, or done, where that is known: " (1.2G of 4G)".
  Mono began;           ///< When this runner took the run over.
};

struct TaskEnd {
  std::string label;
  store::TaskState state = store::TaskState::done;
  exec::Cause cause = exec::Cause::ok;
  std::optional<int> exit_code;
  int signal = 0;
  std::string detail;
  std::optional<double> score{};
  bool again = false;  ///< The task will be tried again.
};

/// A trial that a person carries out, who is asked for its result.
struct Question {
  std::string label;
  std::string command;               ///< For a shell; its parameters where there is no command.
  std::string directory;             ///< Where the command is meant to start.
  std::vector<std::string> metrics;  ///< That the person is asked for.
  /// Takes the answer, as passive_worker.h describes it. Failure: invalid, where it is none.
  std::function<Status(std::string_view told)> answer;
};

/// An Observer follows a run: it is shown what is durable.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_progress(const Progress& progress, Mono now) = 0;
  virtual void on_task_end(const TaskEnd& end) = 0;
  virtual void on_output(const exec::Output& output) = 0;
  virtual void on_note(const std::string& note) = 0;
  virtual void on_question(const Question&) {}
  /// The run is driven no longer; the commands of its end have not run yet.
  virtual void on_driven() {}

  /// False while the Observer has enough: the tasks' output then stays in their pipes. An Observer
  /// may show output more slowly than tasks make it, and must never hold up the run.
  virtual bool wants_output() { return true; }
};

/// Checks what can be checked before the run is recorded: that the program exists and is
/// executable, and that one task of it fits the empty machine. `file` is named in errors; "" for a
/// command line. Failure: not_found, invalid, impossible.
Status check_program(Context& context, const experiment::Program& program,
                     const std::string& directory, const std::string& file);

/// Sets the GPU memory that each trial asks for, where several trials are to share a GPU. Failure:
/// impossible, where there is no such GPU.
Status divide_gpus(Context& context, experiment::Program& program);

/// Lets an Auptimizer document's trials share the cores of this machine, where more of them are to
/// run side by side than there are cores.
Status divide_cores(Context& context, experiment::Program& program);

/// Submits the run with all its trials, durably. Its tasks start in `directory`, which is absolute.
Result<store::RunRecord> submit(Context& context, const experiment::Program& program,
                                const std::string& directory);

/// Drives the run until it is done, failed or stopped (at once, after two stop signals), and
/// returns the final record. Unless `only` is empty, it starts no other tasks. Failure: busy, where
/// another process drives the run.
Result<store::RunRecord> drive(Context& context, const std::string& run_name, Observer& observer,
                               const std::vector<TaskNumber>& only = {});

/// Makes the failed tasks of a run wait again, or with `all` every task that has ended; their
/// retries count from the beginning. Returns these tasks; drive() goes on with them. Unless
/// `spec_json` is empty, it is what the run is asked for from now on. Failure: busy, where the run
/// is driven.
Result<std::vector<TaskNumber>> reopen(Context& context, const std::string& run_name, bool all,
                                       const std::string& spec_json = "");

/// What remove() does with a run of which something is alive (find_living()).
enum class IfLiving : std::uint8_t { refuse, end };
/// Removes a run: its record, output and files. Failure: busy, where the run is driven, where
/// something of it is alive and has to be left, or its tasks may run on a machine that does not
/// answer.
Status remove(Context& context, const std::string& run_name, IfLiving if_living);
/// Removes directories of runs that have no record, as a remove() that was killed leaves them.
/// Returns how many.
Result<int> remove_strays(Context& context);

/// Ends processes of this run whose runner or worker is dead (exec::end_marked). They have the
/// run's directory in BERTH_RUN_DIR; `orphaned` chooses among them by the attempt to which they
/// belong, if to any. Returns how many were ended.
Result<int> end_orphans(os::Env& env, const std::string& run_directory,
                        const std::function<bool(std::optional<Token>)>& orphaned);
/// Ends the agents of a run that nobody drives, where they answer, and everything that they run.
Status end_agents(Context& context, const store::RunRecord& run);
/// Does the same, and keeps runners out meanwhile. Failure: busy, where the run is driven.
Status end_what_was_left(Context& context, const std::string& run_name);

/// Another machine that did not answer when a run ended, and the tasks that may still run there.
struct MayRun {
  std::string machine;
  std::vector<std::string> tasks;  ///< The labels of those that are known.
  Duration time_left;              ///< After that nothing of the run can still run there.
};
Result<std::vector<MayRun>> may_run_remotely(Context& context, const store::RunRecord& run);
std::string to_text(const MayRun& one, const std::string& run);

}  // namespace berth::run
