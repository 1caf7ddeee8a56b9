// Trials that are evaluated outside Berth: those that wait for a result, the results, and points
// that a user adds to a search.
//
// Threads: one. Errors: not_found; invalid, if the run is not of the right kind or has ended.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/context.h"
#include "berth/engine/queries/shown_run.h"
#include "berth/experiment/program.h"

namespace berth::engine {

/// The trials of a passive run that run and have no result yet.
struct WaitingTrials {
  ShownRun run;
  experiment::Program program;
  std::vector<store::TaskRecord> trials;
};
/// `wait`: waits until there is such a trial or the run is over. Errors: interrupted, if a stop
/// signal arrived meanwhile.
Result<WaitingTrials> waiting_trials(Context& context, const std::string& run, bool wait);

/// A result that is stored for the runner.
struct StoredResult {
  std::string run, trial;   ///< "digits-3", "digits-3/17"
  bool is_awaited = false;  ///< The run is under way; otherwise it has to be resumed.
};
/// Stores the result of a trial such as "digits-3/17" for its runner, durably. `result`: see
/// run::read_answer(). Errors: usage; invalid, if it is not a result.
Result<StoredResult> store_result(Context& context, const std::string& trial,
                                  std::string_view result);

/// Points that a search evaluates next.
struct EnqueuedPoints {
  std::string run;
  experiment::Program program;
  std::vector<experiment::Values> points;
  std::vector<std::string> trials;  ///< Their trials; of a study, which adds them immediately.
  bool is_awaited = false;          ///< A study or a runner takes them; otherwise resume the run.
};
/// Adds points such as "lr=0.1 net=deep" to the search of a study or of an adaptive experiment.
/// `option` is named in errors.
Result<EnqueuedPoints> enqueue(Context& context, const std::string& run,
                               const std::vector<std::string>& points, std::string_view option);

}  // namespace berth::engine
