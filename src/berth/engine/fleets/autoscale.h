// The control loop of berth autoscale: what it reads, replays and has recorded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/autoscale/replay.h"

namespace berth::engine {

/// Where decisions are recorded: STATE/autoscale.jsonl.
std::string autoscale_record(const std::string& state_directory);

struct RecordedDecision {
  std::string line;  ///< JSON, as recorded.
  std::string server, at, action, accelerator, reason;
  int current = 0, desired = 0;
  bool applied = false;
  bool changes() const { return current != desired; }
};

/// The last changes for a server, and its last decision; never empty.
struct AutoscaleHistory {
  std::string server;
  std::vector<RecordedDecision> decisions;
};

/// not_found: there are no decisions for a server of that name; the message has the names of
/// others.
Result<AutoscaleHistory> autoscale_history(os::Env& env, const std::string& state_directory,
                                           const std::string& server);

/// Reads a fleet that can be scaled. Errors: as read_fleet(); invalid: it has no server, or what
/// only berth plan supports.
Result<fleet::System> read_scaled_fleet(os::Env& env, const std::string& path,
                                        const FleetNotes& notes);

/// The decisions that the control loop would have made for the requests of a trace.
struct ReplayedTrace {
  std::string server;
  fleet::Replay replay;
  bool has_hold = false;
};

/// `server` may be "" if the system has only one. Errors: as fleet_trace() and fleet::replay();
/// usage: a server that is not known, or none of several is given.
Result<ReplayedTrace> replay_trace(os::Env& env, const fleet::System& system, std::string server,
                                   const std::string& trace, const fleet::ReplayOptions& options,
                                   const fleet::Execution& execution);

/// Parses SERVER=SELECTOR, split at the first '='. Errors: usage, also if a server is given twice.
Result<std::map<std::string, std::string>> selectors_of(const std::vector<std::string>& selects);

}  // namespace berth::engine
