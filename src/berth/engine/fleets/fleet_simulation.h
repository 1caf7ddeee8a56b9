// The servers of a fleet, simulated request by request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/simulate/simulation.h"

namespace berth::engine {

struct SimulationRequest {
  std::vector<std::string> servers{};  ///< Empty: all.
  bool is_current = false;             ///< The current allocations, not those of a plan.
  int replicas = 0;                    ///< Of each server; 0: as allocated.
  std::optional<std::string> trace{};  ///< A file of requests.
  fleet::SimulationOptions options{};  ///< Without the trace.
};

inline constexpr int kFewestRequests = 1000, kMostRequests = 20'000'000;  // of a server

/// A simulation as options of `berth simulate` and values of a request describe it.
struct SimulationChoices {
  std::vector<std::string> servers{};
  bool current = false, at_load = false, tokens_only = false;
  std::string routing = "random", percentiles = "simulated";
  std::optional<std::string> trace{}, in_cv{}, out_cv{}, arrival_cv{};
  int requests = 0, replicas = 0;  ///< 0: not given.
  int seed = 1;
};
/// Errors: usage, with the option.
Result<SimulationRequest> simulation_request(const SimulationChoices& choices);

/// A server, and what it attains or why it is not simulated.
struct SimulatedServer {
  std::string name;
  fleet::Allocation allocation;
  fleet::Target target;
  std::string not_simulated;
  fleet::Simulated found;
};

struct FleetSimulation {
  std::vector<SimulatedServer> servers;
  std::vector<std::string> by_histogram;  ///< Servers whose lengths are drawn from a histogram.
};

/// Errors: as of files; usage: a server that is not known, or replicas for a mix.
Result<FleetSimulation> simulate_fleet(os::Env& env, const fleet::System& system,
                                       SimulationRequest request, const fleet::Execution& execution,
                                       const FleetNotes& notes);

/// "1 request", "20 requests".
std::string requests_text(std::size_t count);

}  // namespace berth::engine
