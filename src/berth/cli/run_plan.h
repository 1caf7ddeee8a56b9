#pragma once

#include "berth/base/result.h"
#include "berth/experiment/program.h"
#include "berth/run/site.h"

namespace berth::cli {

/// Prints where the tasks of the program, which check_program() has passed, would run now.
Result<int> show_plan(run::Site& site, const experiment::Program& program, bool json);

/// Prints what of an experiment's folder goes to a machine of the clusters, and what stays and why.
Result<int> show_sending(os::Env& env, const std::string& directory,
                         const std::vector<std::string>& clusters, bool json);

}  // namespace berth::cli
