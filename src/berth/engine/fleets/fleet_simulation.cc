#include "berth/engine/fleets/fleet_simulation.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/engine/fleets/settings.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::engine {
namespace {

/// The servers that are to be simulated, with their allocations.
Result<std::vector<SimulatedServer>> servers_of(const fleet::System& system,
                                                const SimulationRequest& request,
                                                const fleet::Execution& execution,
                                                const FleetNotes& notes) {
  std::vector<SimulatedServer> servers;
  for (const auto& name : request.servers)
    if (!system.servers.contains(name))
      return fail(ErrorKind::usage, "--server: no server '{}' is known", clip(name));
  if (!request.is_current) note_averages(system, notes);
  const auto plan = request.is_current ? fleet::Plan{} : fleet::plan(system, execution);
  for (const auto& [name, server] : system.servers) {
    if (!request.servers.empty() &&
        std::ranges::find(request.servers, name) == request.servers.end())
      continue;
    SimulatedServer one{name, server.current, fleet::target_of(system, server), "", {}};
    if (!request.is_current) {
      const auto& assignment = plan.servers.at(name);
      one.allocation = assignment.allocation;
      if (one.allocation.replicas == 0) one.not_simulated = assignment.reason;
    }
    if (request.replicas > 0) {
      if (!one.allocation.parts.empty())
        return fail(ErrorKind::usage, "--replicas: {} has {}, whose parts have separate replicas",
                    name, fleet::in_words(one.allocation));
      one.allocation.replicas = request.replicas;
      one.allocation.ttft_ms = one.allocation.itl_ms = 0;  // they were of other replicas
    }
    servers.push_back(std::move(one));
  }
  return servers;
}

/// Whose lengths are drawn of a histogram.
std::vector<std::string> drawn_by_histogram(const std::vector<SimulatedServer>& servers,
                                            const fleet::SimulationOptions& options) {
  std::vector<std::string> by_histogram;
  for (const auto& s : servers) {
    const auto traffic = fleet::traffic_of(s.allocation.load, options);
    const bool is_drawn = s.not_simulated.empty() && options.trace.empty();
    if (is_drawn && (traffic.in.histogram || traffic.out.histogram)) by_histogram.push_back(s.name);
  }
  return by_histogram;
}

void note_trace(const std::vector<fleet::Request>& trace, const FleetNotes& notes) {
  if (trace.empty()) return;
  double in = 0, out = 0;
  for (const auto& request : trace) in += request.in_tokens, out += request.out_tokens;
  const auto count = static_cast<double>(trace.size());
  const double minutes = trace.back().arrival / 60'000;
  notes({fmt::format("the trace has {}, {:.1f} a minute, of {:.1f} tokens in and {:.1f} out",
                     requests_text(trace.size()), minutes > 0 ? (count - 1) / minutes : 0,
                     in / count, out / count)});
}

void note_unsettled(const SimulatedServer& server, const FleetNotes& notes) {
  if (server.found.is_settled()) return;
  notes({fmt::format(
      "{}: the empty start may still have an effect, so no target is known to be met: the "
      "part left out of each history is {:.1f} times as long as the service of a request, expected "
      "{}. It grows with --requests; after that, each ± shrinks with their square root",
      server.name, server.found.left_out, fleet::kLeftOut)});
}

Status read_cv(std::string_view option, const std::optional<std::string>& text,
               std::optional<double>& to) {
  if (!text) return {};
  BERTH_ASSIGN(const double number, parse_value(option, *text));
  constexpr double kMost = 100;
  if (number < 0 || number > kMost)
    return fail(ErrorKind::usage, "{}: expected 0 to {}, got '{}'", option, kMost, clip(*text));
  to = number;
  return {};
}

Status check_trace(const SimulationChoices& given) {
  if (!given.trace) {
    if (given.at_load || given.tokens_only)
      return fail(ErrorKind::usage, "{}: needs --trace",
                  given.at_load ? "--at-load" : "--tokens-only");
    return {};
  }
  if (given.trace->empty()) return fail(ErrorKind::usage, "--trace: expected a file, got ''");
  if (given.at_load && given.tokens_only)
    return fail(ErrorKind::usage, "--at-load: not with --tokens-only");
  if (given.in_cv || given.out_cv)
    return fail(ErrorKind::usage, "{}: not with --trace, which has its tokens",
                given.in_cv ? "--in-cv" : "--out-cv");
  if (given.tokens_only) return {};
  if (given.arrival_cv)
    return fail(ErrorKind::usage,
                "--arrival-cv: the trace has its times; with --tokens-only they are drawn");
  if (given.requests > 0)
    return fail(ErrorKind::usage,
                "--requests: the trace is taken whole; with --tokens-only requests are drawn");
  return {};
}

Status check_range(std::string_view option, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorKind::usage, "{}: expected {} to {}, got {}", option, least, most, value);
}

}  // namespace

Result<SimulationRequest> simulation_request(const SimulationChoices& given) {
  BERTH_TRY(check_trace(given));
  SimulationRequest request{.servers = given.servers,
                            .is_current = given.current,
                            .replicas = given.replicas,
                            .trace = given.trace};
  auto& options = request.options;
  if (given.requests != 0) {
    BERTH_TRY(check_range("--requests", given.requests, kFewestRequests, kMostRequests));
    options.requests = static_cast<std::size_t>(given.requests);
  }
  BERTH_TRY(check_range("--replicas", given.replicas, 0, fleet::kMostSimulatedReplicas));
  BERTH_TRY(check_range("--seed", given.seed, 0, INT32_MAX));
  options.seed = static_cast<std::uint64_t>(given.seed);
  BERTH_TRY(choose("--routing", given.routing, fleet::kRoutingNames, options.routing));
  if (given.at_load) options.trace_use = fleet::TraceUse::at_load;
  if (given.tokens_only) options.trace_use = fleet::TraceUse::tokens;
  BERTH_TRY(read_cv("--in-cv", given.in_cv, options.in_cv));
  BERTH_TRY(read_cv("--out-cv", given.out_cv, options.out_cv));
  BERTH_TRY(read_cv("--arrival-cv", given.arrival_cv, options.arrival_cv));
  return request;
}

std::string requests_text(std::size_t count) {
  return fmt::format("{} request{}", count, count == 1 ? "" : "s");
}

Result<FleetSimulation> simulate_fleet(os::Env& env, const fleet::System& system,
                                       SimulationRequest request, const fleet::Execution& execution,
                                       const FleetNotes& notes) {
  std::vector<fleet::Request> trace;
  if (request.trace) {
    BERTH_ASSIGN(trace, fleet_trace(env, *request.trace));
  }
  note_trace(trace, notes);
  request.options.trace = trace;
  FleetSimulation simulation;
  BERTH_ASSIGN(simulation.servers, servers_of(system, request, execution, notes));
  for (auto& server : simulation.servers) {
    if (!server.not_simulated.empty()) continue;
    auto found =
        fleet::simulate_server(system, server.name, server.allocation, request.options, execution);
    if (found) {
      server.found = *std::move(found);
      note_unsettled(server, notes);
    } else {
      server.not_simulated = found.error().message;
    }
  }
  simulation.by_histogram = drawn_by_histogram(simulation.servers, request.options);
  return simulation;
}

}  // namespace berth::engine
