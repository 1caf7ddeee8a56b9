// Options of berth plan --profile and --trace.
#pragma once

#include <optional>
#include <string>

#include "berth/cli/options.h"
#include "berth/engine/fleets/fleet_day.h"

namespace berth::cli {

struct DayChoices {
  std::optional<std::string> profile, trace, server;  // as written
  std::optional<std::string> window, transition_cost, startup, min_up, hysteresis;
  bool replay = false;

  void add_to(Options& options);
  bool wanted() const { return profile || trace; }
  /// Errors: usage, with the option.
  Result<engine::DayRequest> read() const;
};

/// usage: an option of a day is given, and no profile or trace.
Status check_no_day(const DayChoices& given);

}  // namespace berth::cli
