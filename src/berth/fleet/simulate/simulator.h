// A simulator of inference servers with continuous batching: the replicas of one server, request by
// request. Where the queue of queue.h has averages in equilibrium, this has each request's time to
// its first token (TTFT) and the time between its tokens (ITL). docs/explanation/fleet-simulator.md
// explains the semantics and what is left out.
//
// Pure; any thread; the same arguments give the same bytes. Times in ms. Cost: 100 to 150 ns a
// request (`berth-bench --benchmark_filter=FleetSimulator`), since iterations that only decode are
// added up in closed form between two events, however many tokens they make.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "berth/base/names.h"
#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/fleet/simulate/token_gaps.h"
#include "berth/fleet/simulate/traffic.h"

namespace berth::fleet {

/// How long an iteration takes in which D requests decode a token each, P tokens of prompts are
/// prefilled and K tokens of context are read: sum: α + β_p·P + β·D + γ·K; max: max(α, β_p·P) +
/// β·D + γ·K. K is, of a request that decodes, its prompt and the tokens that it has so far; of a
/// prompt's chunk, what is prefilled after it.
struct StepTime {
  double alpha_ms = 0, beta_ms = 0, gamma_ms = 0;  // not all 0
  double beta_prefill_ms = 0;                      // β_p
  StepForm form = StepForm::sum;

  double at(double prefilled, double decoding, double context) const {
    const double prefill_ms = beta_prefill_ms * prefilled;
    const double fixed_ms = form == StepForm::sum   ? alpha_ms + prefill_ms
                            : alpha_ms > prefill_ms ? alpha_ms
                                                    : prefill_ms;
    return fixed_ms + beta_ms * decoding + gamma_ms * context;
  }
};

/// To which replica a request goes: to each in turn; to any; to one with the fewest requests, and
/// of several the next in turn.
enum class Routing : std::uint8_t { round_robin, random, least_loaded };
inline constexpr auto kRoutingNames = names<Routing>({
    {Routing::round_robin, "round-robin"},
    {Routing::random, "random"},
    {Routing::least_loaded, "least-loaded"},
});

inline constexpr std::int64_t kNoQueueLimit = std::numeric_limits<std::int64_t>::max() / 2;
inline constexpr int kMostSimulatedReplicas = 100'000;

/// From a time on so many replicas are given requests; the others end what they have.
struct ReplicaChange {
  double at_ms = 0;
  int replicas = 1;
};

/// Equal replicas behind one router.
struct Deployment {
  StepTime step;
  int batch = 1;                       // N: requests at the same time
  std::int64_t queue = kNoQueueLimit;  // Q: that wait; who finds N + Q there is lost
  std::int64_t budget = 8192;          // M: tokens that one iteration takes, decoded and prefilled
  double ttft_offset_ms = 0;           // added to each TTFT: what is outside the replica
  int replicas = 1;
  Routing routing = Routing::round_robin;
  std::vector<ReplicaChange> changes{};  // by time; `replicas` is what there is before the first
  double ttft_per_token_ms = 0;          // added to a TTFT for each token of the prompt
  /// Requests come with their prompts prefilled and their first token made: a replica makes the
  /// others, and its TTFT is the gap before the first of these.
  bool only_decodes = false;
};

/// Errors: invalid, with the field.
Status check(const Deployment& deployment);

/// What is measured: requests that arrive and iterations that begin within [from_ms, until_ms).
struct Window {
  double from_ms = 0, until_ms = std::numeric_limits<double>::infinity();
};

/// What was measured. A sum of several adds up the same time on all of them.
struct Outcome {
  std::vector<double> ttft_ms;  // of each request that was served, in order of arrival
  TokenGaps itl;                // of each token but a request's first
  std::int64_t lost = 0;        // requests that found no place
  std::int64_t lost_late = 0;   // of these, after their first token: of a split
  std::int64_t completed = 0;   // requests whose last token came within the window
  double window_ms = 0;
  double in_service = 0;  // requests on average, on all replicas
  double slots = 0;       // replicas · N, on average

  void add(const Outcome& other);
  double mean_ttft_ms() const;  // 0 where nobody was served
  double throughput_per_min() const;
  double utilisation() const { return slots > 0 ? in_service / slots : 0; }
  double lost_part() const;
};

/// Runs the requests, which stand in the order of arrival, until the last is done; each arrives
/// at arrival · ms_per_unit. The replicas are empty at first. `seed` is for random routing.
/// `ttft_by_request`, where it is given, gets one figure a request, within the window or not: NaN
/// where it was lost. Precondition: check(deployment); tokens as check(Traffic) allows them, and of
/// answers at least 2 where the deployment only decodes.
Outcome simulate(const Deployment& deployment, std::span<const Request> requests,
                 double ms_per_unit, const Window& window, std::uint64_t seed,
                 std::vector<double>* ttft_by_request = nullptr);

/// The same of requests that are prefilled by a replica of the one deployment, and are decoded by
/// one of the other from when their first token is there, to which the transfer of the cache
/// counts. TTFT is of the first deployment, ITL of the second, and all else the sum of both.
/// Precondition: `decode` only decodes.
Outcome simulate_split(const Deployment& prefill, const Deployment& decode,
                       std::span<const Request> requests, double ms_per_unit, const Window& window,
                       std::uint64_t seed);

/// The replicas that are given requests, on average over a time.
double mean_replicas(const Deployment& deployment, double from_ms, double until_ms);

/// For each part p in 0..1 the least of the values that at least p of them do not exceed; 0 without
/// values.
std::vector<double> quantiles(std::vector<double> values, std::span<const double> parts);

/// Without the first `part` of the requests, while the replicas fill, and without what comes after
/// the last arrival, while they empty.
Window steady_window(std::span<const Request> requests, double ms_per_unit, double part);

}  // namespace berth::fleet
