// The `berth` program in separate sessions: a runner in the background, and what sends
// notifications. Neither Ctrl-C nor a logout reaches them, and they are not children of this
// process.
#pragma once

#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/engine/runs/control.h"
#include "berth/engine/runs/submission.h"
#include "berth/os/env.h"
#include "berth/run/state/context.h"

namespace berth::engine {

/// Starts a runner of the run that outlives this process, and returns after it has taken the run
/// over. The runner prints to runner_log() (run/state/layout.h). Errors: io, if it did not start
/// within 10 s; not_found, if there is no `berth` program.
Status start_detached(run::Context& context, const store::RunRecord& record);

/// Reads, checks and records a run, and starts its runner. Errors: as read_submission(), check(),
/// submit() and start_detached().
Result<store::RunRecord> start(run::Context& context, const RunRequest& request, const Note& note);

/// Resumes a run with a runner in the background. Returns false if nothing is left to run; a note
/// says so. Errors: not_found; as prepare_resume() and start_detached().
Result<bool> resume_detached(run::Context& context, const std::string& name,
                             const ResumeRequest& request, const Note& note);

/// Makes these tasks wait again (reopen()), and then does what resume_detached() does.
Result<bool> retry_detached(run::Context& context, const std::string& name, RetryScope scope,
                            const ResumeRequest& request, const Note& note);

/// Starts `berth` with these arguments in a separate session. It appends its output to the file
/// `log`. Returns a descriptor that is readable when the process has ended. Errors: not_found;
/// those of Env::spawn().
Result<os::Fd> start_berth(const run::Context& context, const std::vector<std::string>& arguments,
                           const std::string& log);

}  // namespace berth::engine
