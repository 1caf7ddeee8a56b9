// What a search is given beside its file: points that stand in a file of their own, and the trials
// of an earlier run.
#pragma once

#include <string>

#include "berth/experiment/program.h"
#include "berth/run/state/context.h"

namespace berth::run {

/// Reads the points of a search that stand in a file of their own, from `directory` on.
Status read_sequence(os::Env& env, const std::string& directory, experiment::Program& program);

/// Lets the program begin with the latest trials of earlier runs that it could have proposed
/// itself. usage: its search learns from none; invalid: a run has none; not_found: no such run.
Status begin_with(Context& context, const std::vector<std::string>& runs,
                  experiment::Program& program);

}  // namespace berth::run
