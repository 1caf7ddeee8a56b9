// A server of a fleet, simulated: what its allocation attains at its load, with how far chance may
// have moved each figure.
// docs/explanation/fleet-simulator.md.
//
// Pure; any thread. The same arguments give the same bytes, whatever executes them.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "berth/fleet/fleet.h"
#include "berth/fleet/simulate/simulator.h"

namespace berth::fleet {

/// What of a trace is used: its times and tokens; the same with the times stretched, so that its
/// rate is the server's load; only its tokens, each request's drawn at random of the trace's.
enum class TraceUse : std::uint8_t { as_it_is, at_load, tokens };

struct SimulationOptions {
  std::size_t requests = 200'000;  // in all, of one server
  std::uint64_t seed = 1;
  Routing routing = Routing::random;  // as the plan has it
  // In place of what the load has: of the tokens of a request, and of the gaps between arrivals.
  std::optional<double> in_cv{}, out_cv{}, arrival_cv{};
  std::span<const Request> trace{};  // arrivals in ms; empty: all is drawn
  TraceUse trace_use = TraceUse::as_it_is;
};

/// A mean over histories, and half of its 95 % confidence interval; nullopt where there is one
/// history.
struct Estimate {
  double value = 0;
  std::optional<double> error;
};

/// The percentiles are of requests (TTFT) or tokens (ITL) of one history: kPercentiles, in their
/// order, so that each that may have a target has its figure.
struct LatencyEstimate {
  Estimate mean;
  std::array<Estimate, kPercentiles.size()> percentiles;
  std::int64_t count = 0;  // of these requests or tokens, in all histories; without any all is 0
};

inline constexpr double kLeftOut = 3;

struct Simulated {
  LatencyEstimate ttft_ms, itl_ms;
  Estimate throughput_per_min, in_service, utilisation, lost_part;
  int histories = 0;
  std::int64_t requests = 0;  // measured: served or lost
  // What is not measured at the beginning of each history, in times that a request is served on
  // average; below kLeftOut the replicas are not yet as full as they will be.
  double left_out = std::numeric_limits<double>::infinity();
  std::vector<double> all_ttft_ms{};  // of every request that was served, in all histories
  /// Whether nothing of the empty start is felt; a trace's is part of it.
  bool is_settled() const { return histories == 1 || left_out >= kLeftOut; }
};

/// Whether a figure is at most what it is to be. unsure: the confidence interval has values that
/// are and values that are not. The greater, the worse.
enum class Verdict : std::uint8_t { none, met, unsure, missed };
inline constexpr auto kVerdictNames = names<Verdict>({{Verdict::none, "none"},
                                                      {Verdict::met, "met"},
                                                      {Verdict::unsure, "unsure"},
                                                      {Verdict::missed, "missed"}});
Verdict verdict(const Estimate& figure, double most);
/// Of a latency's figure, of `count` requests or tokens, under a target in ms. Few are quick where
/// many are turned away: it is missed, too, where more of the requests are lost than the 1 % that a
/// plan allows. Nor is it met, but unsure, where the empty start is felt, since that makes figures
/// too low. none: there is no target (0), or nothing was lost and nothing measured.
Verdict verdict(const Simulated& simulated, const Estimate& figure, std::int64_t count,
                double target_ms);

/// Replicas of one accelerator, as the simulator takes them, and the part of the load that they
/// get. Of a split those that prefill, with those that decode.
struct Share {
  Deployment deployment;
  double load_part = 1;
  std::optional<Deployment> decode{};
};
/// What of a fleet's document the simulator sees: of an allocation without parts one share, of a
/// mix one for each, of a split one. Errors: impossible, with what is missing: an accelerator,
/// replicas, performance data, a batch.
Result<std::vector<Share>> shares_of(const System& system, const Server& server,
                                     const Allocation& allocation, Routing routing);
/// One replica.
Deployment deployment_of(const Performance& performance, int batch, std::int64_t queue,
                         Role role = Role::whole);
/// Makes of whole requests what a replica of the role sees of them: answers of a token where it
/// prefills, none of less than two where it decodes.
void give_role(std::vector<Request>& requests, Role role);
Traffic traffic_of(const Load& load, const SimulationOptions& options);

/// Simulates the allocation at its load, or at the trace. Drawn requests are ten histories, each
/// with seeds of its own, whose first tenth is not measured; the times of a trace are one history,
/// measured whole. Errors: impossible as shares_of(), and without a load; invalid as check() of
/// traffic and deployment.
Result<Simulated> simulate_server(const System& system, const std::string& server,
                                  const Allocation& allocation, const SimulationOptions& options,
                                  const Execution& execution = {});

}  // namespace berth::fleet
