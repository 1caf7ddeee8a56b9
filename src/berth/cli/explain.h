// What berth why and berth show RUN/TASK say of one task.
#pragma once

#include <string>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::cli {

/// Prints why the task `of`, such as "digits-3/17", waits, ran again, failed or was stopped, each
/// of its attempts, and where it failed the command and its last lines. usage: `of` is a whole run;
/// not_found: there is no such task.
Result<int> explain(os::Env& env, const std::string& of, bool json);

}  // namespace berth::cli
