// What clients do with a run that was submitted before: stop it, resume it, run its tasks again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/engine/runs/submission.h"
#include "berth/run/drive/runner.h"
#include "berth/run/state/find_run.h"
#include "berth/run/state/run_end.h"

namespace berth::engine {

using run::exit_code_of;
using run::find_run;
using run::may_run_remotely;

/// Stops a run so that it can be resumed, and returns after that is recorded. A run that does not
/// run gives back its allocation, and what it left on remote machines is ended. `note` receives
/// what was done. Returns the machines that do not answer, on which tasks may still run. Errors:
/// not_found; busy, if the runner is out of reach (on another machine, or in a container).
Result<std::vector<run::MayRun>> stop(run::Context& context, const std::string& name,
                                      const Note& note);

struct ResumeRequest {
  bool send_large = false;         ///< Send the experiment's directory although it is large.
  bool env_of_submission = false;  ///< Use the environment variables of the submission.
  bool overwrite = false;  ///< Of a flow: replace outputs that are protected or were edited.
};

/// Checks that the request fits the run. Errors: invalid.
Status check_resume(const store::RunRecord& record, const ResumeRequest& request);

/// Prepares a run for its next runner. `note` receives how a resume differs from the submission.
/// Returns false if nothing is left to run; then conclude() makes up for what its last runner did
/// not do. Errors: invalid, if the request does not fit the run.
Result<bool> prepare_resume(run::Context& context, const store::RunRecord& record,
                            const ResumeRequest& request, const Note& note);

/// Which tasks run again.
enum class RetryScope : std::uint8_t {
  failed,  ///< The tasks that failed.
  all,     ///< All tasks; those of a flow that are in the cache are done.
  file,    ///< All tasks of a flow, as its file is now.
};

/// Makes these tasks wait again, and returns them. Errors: busy, if the run is driven; invalid, if
/// it is not a flow and `scope` is `file`; those of its file.
Result<std::vector<TaskNumber>> reopen(run::Context& context, const std::string& name,
                                       RetryScope scope);

/// Checks that a run is not in use, so that run::remove() may remove it. A study has no runner: it
/// is in use while a program evaluates one of its trials. Errors: busy.
Status check_unused(run::Context& context, const store::RunRecord& run);

}  // namespace berth::engine
