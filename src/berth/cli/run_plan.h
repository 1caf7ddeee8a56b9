// What berth run --plan prints: what would run, or what would be sent. Nothing is submitted.
#pragma once

#include "berth/base/result.h"
#include "berth/experiment/program.h"
#include "berth/run/context.h"

namespace berth::cli {

/// Prints where the tasks of the program would run now, on this machine. The program has passed
/// run::check_program(). Returns the exit code.
Result<int> show_plan(run::Context& context, const experiment::Program& program, bool json);

/// Prints which files of an experiment's folder would be sent to machines of the clusters, and
/// which would not, and why. Returns the exit code.
Result<int> show_sending(os::Env& env, const std::string& directory,
                         const std::vector<std::string>& clusters, bool json);

}  // namespace berth::cli
