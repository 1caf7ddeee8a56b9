// What berth why says of a run, and of one task, as does berth show RUN/TASK.
#pragma once

#include <string>

#include "berth/base/result.h"
#include "berth/cli/output.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Prints why the task `of`, such as "digits-3/17", waits, ran again, failed or was stopped, each
/// of its attempts, and where it failed the command and its last lines. For a whole run, such as
/// "digits-3", prints what explain_run.h says. not_found: there is no such run or task.
Result<int> explain(os::Env& env, const std::string& of, const Output& output);

}  // namespace berth::cli
