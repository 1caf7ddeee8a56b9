// A trace, replayed: the control loop of autoscaler.h decides as it would have, from what it would
// have measured, and the simulator serves the requests with the replicas that there were then.
// docs/explanation/fleet-days.md, "The control loop".
//
// Pure; any thread. The same arguments give the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "berth/fleet/autoscale/autoscaler.h"
#include "berth/fleet/simulate/served_trace.h"
#include "berth/fleet/simulate/simulator.h"

namespace berth::fleet {

struct ReplayOptions {
  AutoscalerOptions autoscaler;
  double window_s = 60;  // a decision sees what arrived so long before it
  Routing routing = Routing::random;
  std::uint64_t seed = 1;
};

struct Replay {
  std::string accelerator;
  int batch = 1;
  double length_s = 0;
  std::vector<std::pair<double, Decision>> decisions;  // by time in seconds
  Attainment attained;
  double cents = 0;                               // of the replicas, those that start included
  int static_replicas = 0;                        // that the busiest window needs
  double static_cents = 0;                        // of these over the whole time
  std::int64_t starts = 0, stops = 0, flaps = 0;  // flaps: stops within hold_s after a start
};

/// Replays the requests as those of one server; the other servers are left out. It begins with what
/// the first window needs. Errors: not_found: the server; invalid: as check(), fewer than two
/// requests, a trace that is shorter than two intervals or has more than 100,000; impossible:
/// nothing serves it.
Result<Replay> replay(const System& system, const std::string& server,
                      std::span<const Request> trace, const ReplayOptions& options,
                      const Execution& execution = {});

}  // namespace berth::fleet
