// Options that several commands have.
#pragma once

#include <string>
#include <string_view>

#include "berth/base/time.h"
#include "berth/cli/options.h"

namespace berth::cli {

/// RUN: which run the command is about.
Option add_run(Options& options, std::string& to);

/// --topology: a machine other than this one.
Option add_topology(Options& options, std::string& to);

/// --percentiles: what decides how great a rate is within targets for percentiles: "simulated" or
/// "closed-form"; planning_execution() takes it.
Option add_percentiles(Options& options, std::string& to);

/// The age that an option such as --older-than was given; 30 days where it was not given.
Result<Duration> age_of(std::string_view option, const std::string& text);

}  // namespace berth::cli
