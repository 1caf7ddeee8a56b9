#include "berth/engine/fleets/fleet_day.h"

#include <map>

#include "berth/base/text.h"

namespace berth::engine {
namespace {

constexpr std::size_t kMostProfileBytes = 64U << 20;
constexpr std::uint64_t kReplaySeed = 1;

/// The part of the trace that each server gets: all of it, or as much as it has of the document's
/// rates.
Result<std::map<std::string, double>> parts_of(const fleet::System& system,
                                               const std::optional<std::string>& server) {
  if (server) {
    if (!system.servers.contains(*server))
      return fail(ErrorKind::usage, "--server: no server '{}' is known", clip(*server));
    return std::map<std::string, double>{{*server, 1}};
  }
  double all = 0;
  for (const auto& [name, each] : system.servers) all += each.current.load.arrivals_per_min;
  if (all == 0)
    return fail(ErrorKind::usage,
                "--trace: no server has an arrivalRate to share it by; name one with --server");
  std::map<std::string, double> parts;
  for (const auto& [name, each] : system.servers)
    parts[name] = each.current.load.arrivals_per_min / all;
  return parts;
}

/// The windows, and of a trace the requests that they were made of with the part of each server.
struct DayLoads {
  fleet::Profile profile;
  std::vector<fleet::Request> trace;
  std::map<std::string, double> parts;
};

Result<DayLoads> loads_for(os::Env& env, const fleet::System& system, const DayRequest& request) {
  for (const auto& [option, path] :
       {std::pair("--profile", &request.profile), {"--trace", &request.trace}})
    if (*path && (*path)->empty())
      return fail(ErrorKind::usage, "{}: expected a file, got ''", option);
  DayLoads loads;
  if (request.profile) {
    BERTH_ASSIGN(const auto text, env.read_file(*request.profile, kMostProfileBytes));
    BERTH_ASSIGN(loads.profile, fleet::read_profile(*request.profile, text, system));
    return loads;
  }
  BERTH_ASSIGN(loads.parts, parts_of(system, request.server));
  BERTH_ASSIGN(loads.trace, fleet_trace(env, *request.trace));
  BERTH_ASSIGN(loads.profile, fleet::profile_of(loads.trace, request.window_s, loads.parts));
  return loads;
}

}  // namespace

Result<PlannedDay> plan_day(os::Env& env, fleet::System system, const DayRequest& request,
                            const fleet::Execution& execution, const FleetNotes& notes) {
  BERTH_ASSIGN(const auto loads, loads_for(env, system, request));
  if (system.options.solver == fleet::Solver::greedy)
    notes({"the document's solver, greedy, is of one load; a day is planned by optimal"});
  if (system.options.heterogeneous) notes({"over a day each server has one accelerator at a time"});
  if (system.options.disaggregated) notes({"over a day prefill and decode stay together"});
  PlannedDay planned{.system = std::move(system)};
  BERTH_ASSIGN(planned.day,
               fleet::plan_day(planned.system, loads.profile, request.options, execution));
  if (request.is_replayed) {
    BERTH_ASSIGN(planned.replayed,
                 fleet::replay_day(planned.system, planned.day, request.options, loads.trace,
                                   loads.parts, kReplaySeed, execution));
  }
  return planned;
}

}  // namespace berth::engine
