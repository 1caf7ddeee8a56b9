// Notes about tasks of a flow whose command or variables are too long for a process, as far as the
// paths are known before the flow runs.
#pragma once

#include "berth/run/flows/flow_run.h"

namespace berth::run {

/// Returns a note for each step of which a task exceeds the limits of this machine. The function
/// takes a copy of the graph through the flow as if each task had written its declared files, and
/// stops silently where that needs the content of a file.
flow::Words notes_of_long_starts(os::Env& env, const flow::Graph& built,
                                 const std::string& directory, Answers answers);

}  // namespace berth::run
