#pragma once

#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/run/context.h"

namespace berth::cli {

/// Starts a runner of the run that outlives this process, and returns once it has taken the run
/// over. The runner prints to runner_log() (run/layout.h). io: it did not start within 10 s.
Status start_detached(os::Env& env, run::Context& context, const store::RunRecord& record);

/// Starts `berth` with these words in a session of its own, which prints to the file, and does not
/// wait for it.
Status start_apart(const std::vector<std::string>& words, const std::string& log);

/// Lets go of runners of this process that have ended: until then they would count as alive.
void reap_runners();

}  // namespace berth::cli
