// Lookups of runs and tasks by names that a person wrote. Their errors suggest the nearest name.
//
// Threads: one. Failure: that of the store; not_found with a suggestion where a name is near.
#pragma once

#include <string>
#include <string_view>

#include "berth/run/state/context.h"

namespace berth::run {

/// Finds a run by its name. not_found: "no run is called 'firs-1'; did you mean 'first-1'?".
Result<store::RunRecord> find_run(const Context& context, std::string_view name);
/// Finds a task by its label. not_found: "digits-3 has no task '99'; its tasks are 1 to 40".
Result<store::TaskRecord> find_task(const Context& context, const store::RunRecord& run,
                                    std::string_view label);

/// A reference to the run that was submitted last; "@last/17" is one of its tasks.
inline constexpr std::string_view kLastRun = "@last";
/// Replaces "@last" by the name of the latest run. not_found: there are no runs.
Status replace_last_run(const Context& context, std::string& reference);

}  // namespace berth::run
