// berth plan --profile, --trace: a fleet over a day.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/options.h"
#include "berth/fleet/fleet.h"
#include "berth/os/env.h"

namespace berth::cli {

struct DayChoices {
  std::optional<std::string> profile, trace, server;  // as written
  std::optional<std::string> window, transition_cost, startup, min_up, hysteresis;
  bool replay = false;

  void add_to(Options& options);
  bool wanted() const { return profile || trace; }
};

/// Plans the day and prints it; the number is the exit code: 1 where a server goes without and
/// `fail_unserved`. Errors: as of files; usage, with the option; as plan_day().
Result<int> plan_and_print_day(os::Env& env, const fleet::System& system, const DayChoices& given,
                               const fleet::Execution& means, bool json, bool fail_unserved);
/// usage: an option of a day is given, and no profile or trace.
Status check_no_day(const DayChoices& given);

}  // namespace berth::cli
