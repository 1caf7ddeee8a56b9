// What is known of runs: the list, one run with its tasks, its best trial, and its end.
//
// Every function reads the store once; the results are the caller's. Errors: not_found; those of
// the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/engine/queries/shown_run.h"
#include "berth/engine/queries/trials.h"
#include "berth/exec/labels.h"
#include "berth/run/state/context.h"
#include "berth/run/state/task_report.h"

namespace berth::engine {

/// Returns all runs with their states, the oldest first. `with_labels` reads what each was
/// submitted with, which takes longer.
Result<std::vector<ShownRun>> list_runs(run::Context& context, bool with_labels);

struct RunDetails {
  ShownRun shown;
  experiment::Program program;  ///< Empty for a flow.
  std::vector<store::TaskRecord> tasks;
};
struct DetailsWanted {
  bool tasks = true;              ///< False: only if the summary needs them.
  std::size_t most_failures = 0;  ///< The number of failed tasks that are described.
};
Result<RunDetails> details_of(run::Context& context, const std::string& name,
                              const DetailsWanted& wanted);

/// The trial with the best score, and the Pareto front under several goals.
struct BestTrial {
  store::RunRecord record;
  experiment::Program program;
  store::TaskRecord task;
  std::vector<store::TaskRecord> front;  ///< The best first; empty with one goal.
};
/// Errors: invalid, if the run has no goal; busy, if no finished trial has a score yet.
Result<BestTrial> best_of(run::Context& context, const std::string& name);

/// Waits until the run has ended, or until `until`. Errors: busy at that time; stale, if its runner
/// died; interrupted by a stop signal.
Result<ShownRun> wait_for(run::Context& context, const std::string& name,
                          std::optional<Mono> until);

/// Where a task ran, and with which command and environment.
struct TaskPlace {
  std::string id;  ///< "count-2/map/A"
  run::TaskReport report;
};
/// `path`: "RUN/TASK"; "RUN" is its first task. Errors: not_found.
Result<TaskPlace> task_place(run::Context& context, std::string_view path);

/// The program or file, arguments and labels of a run, as it was submitted. URLs are without their
/// secrets.
struct Asked {
  std::string program;
  std::vector<std::string> arguments;
  exec::Labels labels;
};
Asked asked_of(const store::RunRecord& run);

/// The exit code of a run that ended, the same for `run`, `resume`, `retry` and `wait`: 0 done, 1
/// failed, 3 stopped, 130 stopped by Ctrl-C, or that of its command.
Result<int> exit_code_of(run::Context& context, const store::RunRecord& run);

/// What a trial has reported of the goal's metric.
struct Curve {
  std::string label;
  bool stopped_early = false;
  std::vector<double> values;
};
/// The learning curves of the trials with the best scores, at most `most` of them.
Result<std::vector<Curve>> leading_curves(run::Context& context, const RunDetails& run,
                                          std::size_t most);
/// Those of the best trials, and of the latest ones that were stopped early, at most `most` of
/// each.
Result<std::vector<Curve>> curves_of(run::Context& context, const RunDetails& run,
                                     std::size_t most);

}  // namespace berth::engine
