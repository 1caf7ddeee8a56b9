#include "berth/fleet/simulate/simulation.h"

#include <algorithm>
#include <cmath>

#include "berth/base/rng.h"
#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/queue.h"
#include "berth/fleet/queueing/sizing.h"

namespace berth::fleet {
namespace {

constexpr std::size_t kHistories = 10;
constexpr double kStudent =
    2.262;                       // the 97.5th percentile of Student's t with 9 degrees of freedom
constexpr double kWarmUp = 0.1;  // part of a history's requests
constexpr double kMinute_ms = 60'000;

bool has_times(const SimulationOptions& options) {
  return !options.trace.empty() && options.trace_use != TraceUse::tokens;
}

std::vector<Request> requests_of(const Traffic& traffic, const SimulationOptions& options,
                                 std::uint64_t seed) {
  const auto& trace = options.trace;
  if (has_times(options)) return {trace.begin(), trace.end()};
  auto drawn =
      draw_requests(traffic, std::max<std::size_t>(2, options.requests / kHistories), seed);
  if (trace.empty()) return drawn;
  Rng rng(seed_of(seed, Stream::in_tokens, 1));
  for (Request& request : drawn) {
    const Request& like = trace[static_cast<std::size_t>(rng.below(trace.size()))];
    request.in_tokens = like.in_tokens, request.out_tokens = like.out_tokens;
  }
  return drawn;
}

double ms_per_unit(const Load& load, const SimulationOptions& options) {
  if (!has_times(options)) return kMinute_ms / load.arrivals_per_min;
  if (options.trace_use == TraceUse::as_it_is || options.trace.size() < 2) return 1;
  const double gap_ms =
      options.trace.back().arrival / static_cast<double>(options.trace.size() - 1);
  return gap_ms > 0 ? kMinute_ms / load.arrivals_per_min / gap_ms : 1;
}

Outcome history_of(std::span<const Share> shares, const Traffic& traffic, double unit_ms,
                   const SimulationOptions& options, std::uint64_t seed) {
  auto requests = requests_of(traffic, options, seed);
  const Window window = has_times(options) ? Window{} : steady_window(requests, unit_ms, kWarmUp);
  std::vector<double> parts;
  for (const Share& share : shares) parts.push_back(share.load_part);
  const auto of = divide(std::move(requests), parts, seed);
  Outcome all;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const std::uint64_t routing = seed_of(seed, Stream::routing, 2 + s);
    if (shares[s].decode)
      return simulate_split(shares[s].deployment, *shares[s].decode, of[s], unit_ms, window,
                            routing);
    all.add(simulate(shares[s].deployment, of[s], unit_ms, window, routing));
  }
  return all;
}

/// A latency in one history.
struct Figures {
  double mean_ms = 0;
  std::vector<double> percentiles_ms;
  std::int64_t count = 0;
};

template <class Of, class Figure>
Estimate estimate(const Of& histories, Figure figure) {
  const auto count = static_cast<double>(histories.size());
  double sum = 0, squares = 0;
  for (const auto& history : histories) sum += figure(history);
  const double mean = sum / count;
  for (const auto& history : histories) squares += std::pow(figure(history) - mean, 2);
  if (histories.size() < kHistories) return {mean, std::nullopt};
  return {mean, kStudent * std::sqrt(squares / (count - 1) / count)};
}

/// A history in which nobody was served has no latency, and then there is no interval.
LatencyEstimate latency(std::vector<Figures> histories) {
  std::erase_if(histories, [](const Figures& history) { return history.count == 0; });
  LatencyEstimate all;
  if (histories.empty()) return all;
  all.mean = estimate(histories, [](const Figures& f) { return f.mean_ms; });
  for (std::size_t p = 0; p < kPercentiles.size(); ++p)
    all.percentiles[p] = estimate(histories, [p](const Figures& f) { return f.percentiles_ms[p]; });
  for (const auto& history : histories) all.count += history.count;
  return all;
}

Simulated summary_of(std::span<const Outcome> histories, std::vector<Figures> ttft,
                     std::vector<Figures> itl) {
  Simulated all{latency(std::move(ttft)),
                latency(std::move(itl)),
                estimate(histories, [](const Outcome& o) { return o.throughput_per_min(); }),
                estimate(histories, [](const Outcome& o) { return o.in_service; }),
                estimate(histories, [](const Outcome& o) { return o.utilisation(); }),
                estimate(histories, [](const Outcome& o) { return o.lost_part(); }),
                static_cast<int>(histories.size())};
  for (const auto& history : histories) {
    all.requests += std::ssize(history.ttft_ms) + history.lost - history.lost_late;
    all.all_ttft_ms.insert(all.all_ttft_ms.end(), history.ttft_ms.begin(), history.ttft_ms.end());
  }
  // By Little's law, in_service requests are served while one is.
  const double served = static_cast<double>(all.ttft_ms.count) / all.histories;
  if (served > 0) all.left_out = served * kWarmUp / (1 - kWarmUp) / all.in_service.value;
  return all;
}

}  // namespace

Verdict verdict(const Estimate& figure, double most) {
  const double error = figure.error.value_or(0);
  if (figure.value + error <= most) return Verdict::met;
  return figure.value - error > most ? Verdict::missed : Verdict::unsure;
}

Verdict verdict(const Simulated& simulated, const Estimate& figure, std::int64_t count,
                double target_ms) {
  if (target_ms == 0) return Verdict::none;
  const auto of_lost = verdict(simulated.lost_part, kMostLoss);
  if (count == 0) return of_lost == Verdict::met ? Verdict::none : of_lost;
  const auto worse = std::max(of_lost, verdict(figure, target_ms));
  return worse == Verdict::met && !simulated.is_settled() ? Verdict::unsure : worse;
}

Result<std::vector<Share>> shares_of(const System& system, const Server& server,
                                     const Allocation& allocation, Routing routing) {
  std::vector<Allocation> parts = allocation.parts;
  if (parts.empty()) parts.push_back(allocation);
  std::ranges::stable_sort(parts, {}, &Allocation::role);  // those that prefill before the others
  const auto model = system.models.find(server.model);
  std::vector<Share> shares;
  for (const Allocation& part : parts) {
    if (part.accelerator.empty()) return fail(ErrorKind::impossible, "it has no accelerator");
    if (part.replicas < 1) return fail(ErrorKind::impossible, "it has no replicas");
    if (model == system.models.end() || !model->second.accelerators.contains(part.accelerator))
      return fail(ErrorKind::impossible, "no performance data of '{}' on '{}'", server.model,
                  part.accelerator);
    if (part.batch < 1)
      return fail(ErrorKind::impossible, "maxBatch: expected at least 1, got {}", part.batch);
    const Performance& performance = model->second.accelerators.at(part.accelerator);
    Share share;
    share.deployment = deployment_of(performance, part.batch, server.max_queue, part.role);
    share.deployment.replicas = part.replicas;
    share.deployment.routing = routing;
    if (part.role == Role::decode) {
      if (shares.empty()) return fail(ErrorKind::impossible, "it has nothing that prefills");
      BERTH_TRY(check(share.deployment));
      shares.back().decode = share.deployment;
      continue;
    }
    const double whole = allocation.load.arrivals_per_min;
    if (parts.size() > 1 && !allocation.is_split() && whole > 0)
      share.load_part = part.load.arrivals_per_min / whole;
    BERTH_TRY(check(share.deployment));
    shares.push_back(share);
  }
  return shares;
}

Deployment deployment_of(const Performance& performance, int batch, std::int64_t queue, Role role) {
  const Transfer transfer =
      role == Role::prefill ? performance.transfer.value_or(Transfer{}) : Transfer{};
  return {.step = {.alpha_ms = performance.alpha_ms,
                   .beta_ms = performance.beta_ms,
                   .gamma_ms = performance.gamma_ms,
                   .beta_prefill_ms = performance.prefill_ms(),
                   .form = performance.form},
          .batch = batch,
          .queue = queue,
          .budget = static_cast<std::int64_t>(kBatchTokens),
          .ttft_offset_ms = performance.ttft_offset_ms + transfer.fixed_ms,
          .ttft_per_token_ms = transfer.per_token_ms,
          .only_decodes = role == Role::decode};
}

void give_role(std::vector<Request>& requests, Role role) {
  if (role == Role::prefill)
    for (Request& request : requests) request.out_tokens = std::min(request.out_tokens, 1);
  if (role == Role::decode)
    std::erase_if(requests, [](const Request& request) { return request.out_tokens < 2; });
}

Traffic traffic_of(const Load& load, const SimulationOptions& options) {
  const auto lengths = [](double mean, double load_cv, const LengthHistogram& histogram,
                          const std::optional<double>& told_cv) {
    if (histogram && !told_cv) return Lengths{Lengths::Kind::histogram, mean, 0, histogram};
    const double cv = told_cv.value_or(load_cv);
    return Lengths{cv > 0 ? Lengths::Kind::lognormal : Lengths::Kind::fixed, mean, cv};
  };
  return {lengths(load.in_tokens, load.in_cv, load.in_histogram, options.in_cv),
          lengths(load.out_tokens, load.out_cv, load.out_histogram, options.out_cv),
          options.arrival_cv.value_or(load.arrival_cv)};
}

Result<Simulated> simulate_server(const System& system, const std::string& server,
                                  const Allocation& allocation, const SimulationOptions& options,
                                  const Execution& execution) {
  BERTH_ASSIGN(const Server known, get(system.servers, server));
  BERTH_ASSIGN(const auto shares, shares_of(system, known, allocation, options.routing));
  const Traffic traffic = traffic_of(allocation.load, options);
  BERTH_TRY(check(traffic));
  const bool needs_load = options.trace.empty() || options.trace_use != TraceUse::as_it_is;
  if (needs_load && !(rate_per_ms(allocation.load, {}, QueueModel::calibrated) > 0))
    return fail(ErrorKind::impossible, "it has no load");
  const double unit_ms = ms_per_unit(allocation.load, options);
  std::vector<Outcome> histories(has_times(options) ? 1 : kHistories);
  std::vector<Figures> ttft(histories.size()), itl(histories.size());
  for_each(execution, histories.size(), [&](std::size_t h) {
    histories[h] =
        history_of(shares, traffic, unit_ms, options, seed_of(options.seed, Stream::history, h));
    const Outcome& o = histories[h];
    ttft[h] = {o.mean_ttft_ms(), quantiles(o.ttft_ms, kPercentiles), std::ssize(o.ttft_ms)};
    itl[h] = {o.itl.mean_ms(), o.itl.quantiles_ms(kPercentiles), o.itl.tokens()};
  });
  return summary_of(histories, std::move(ttft), std::move(itl));
}

}  // namespace berth::fleet
