// Options that several commands share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/time.h"
#include "berth/cli/options.h"

namespace berth::cli {

/// Replaces "@last" by the name of the latest run, as engine::replace_last_run().
Status replace_last_run(os::Env& env, std::string& reference);

/// Declares RUN, which is required.
Option add_run(Options& options, std::string& to, const std::string& name = "RUN",
               const std::string& help = "Run, such as digits-3 or @last");
/// Declares RUN, which is the latest run where it is absent.
Option add_run_or_last(Options& options, std::string& to, const std::string& name = "RUN",
                       const std::string& help = "Run, such as digits-3");
/// Declares RUN..., of which at least one is required.
Option add_runs(Options& options, std::vector<std::string>& to, const std::string& help);

/// Declares --topology: a machine other than this one.
Option add_topology(Options& options, std::string& to);

/// Declares PATH: a fleet document or a directory of them.
Option add_fleet(Options& options, std::string& to);

/// Declares --percentiles, which selects how targets for percentiles are checked: "simulated" or
/// "closed-form"; planning_execution() takes it.
Option add_percentiles(Options& options, std::string& to);

/// Parses the age given to an option such as --older-than; the default is 30 days.
Result<Duration> age_of(std::string_view option, const std::string& text);

}  // namespace berth::cli
