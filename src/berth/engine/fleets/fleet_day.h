// A fleet planned over a day, by a profile of loads or a trace of requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/day/day.h"
#include "berth/fleet/day/day_replay.h"

namespace berth::engine {

struct DayRequest {
  std::optional<std::string> profile, trace;  ///< Files; one of them is given.
  std::optional<std::string> server;          ///< Gets the whole trace.
  double window_s = 600;                      ///< Of the trace.
  bool is_replayed = false;                   ///< The trace is simulated under each plan.
  fleet::DayOptions options{};
};

struct PlannedDay {
  fleet::System system{};
  fleet::Day day{};
  std::optional<std::vector<fleet::ReplayedServer>> replayed{};

  bool leaves_unserved() const { return day.best.unserved_h > 0 || !day.unservable.empty(); }
};

/// Errors: as of files; usage, with the option; as fleet::plan_day() and fleet::replay_day().
Result<PlannedDay> plan_day(os::Env& env, fleet::System system, const DayRequest& request,
                            const fleet::Execution& execution, const FleetNotes& notes);

}  // namespace berth::engine
