// How far the calibrated model's closed form is from the simulator: of 54 settings the error of
// each figure, before (lengths that are all equal: the reference model's figures) and after; and of
// the greatest rate within a target, which is what sizing needs. docs/explanation/fleet-accuracy.md
// has the tables.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "berth/fleet/queueing/latencies.h"
#include "berth/fleet/queueing/reference_queue.h"
#include "berth/fleet/simulate/simulated_limit.h"
#include "berth/fleet/simulate/simulator.h"

namespace berth::fleet {
namespace {

struct Replica {
  Performance performance;
  double in_tokens, out_tokens;
  int batch;
  Lengths::Kind kind;
};

constexpr Performance card(double alpha_ms, double beta_ms, double gamma_ms) {
  Performance p;
  p.alpha_ms = alpha_ms, p.beta_ms = beta_ms, p.gamma_ms = gamma_ms;
  return p;
}
// 8 billion parameters on H100 and A100, 70 billion on two H100, and the published example.
constexpr std::array kCards{card(8.3, 0.036, 6.4e-5), card(12.7, 0.114, 1.05e-4),
                            card(31.4, 0.157, 8e-5), card(12, 0.05, 5e-4)};
constexpr auto kFixed = Lengths::Kind::fixed, kGeometric = Lengths::Kind::geometric,
               kLognormal = Lengths::Kind::lognormal;
constexpr std::array<Replica, 9> kReplicas{{{kCards[0], 700, 250, 128, kFixed},
                                            {kCards[0], 700, 250, 32, kGeometric},
                                            {kCards[0], 700, 250, 256, kLognormal},
                                            {kCards[1], 500, 200, 64, kFixed},
                                            {kCards[1], 1500, 150, 32, kLognormal},
                                            {kCards[2], 1200, 300, 8, kGeometric},
                                            {kCards[2], 1200, 300, 128, kLognormal},
                                            {kCards[3], 128, 512, 32, kFixed},
                                            {kCards[3], 128, 512, 256, kGeometric}}};
constexpr std::array kUtilisations{0.3, 0.5, 0.7, 0.85, 0.92, 0.97};
constexpr double kLognormalInCv = 1.3, kLognormalOutCv = 1;
constexpr std::array kParts{0.5, 0.95, 0.99};

enum Figure { kTtft, kTtft50, kTtft95, kTtft99, kItl, kItl95, kFigures };
constexpr std::array kNames{"mean TTFT", "p50 TTFT", "p95 TTFT", "p99 TTFT", "mean ITL", "p95 ITL"};
using Figures = std::array<double, kFigures>;

/// The variation of geometric lengths.
double geometric_cv(double mean) {
  return std::sqrt(1 - 1 / mean);
}

Demand demand_of(const Replica& r) {
  Demand demand;
  demand.in_tokens = r.in_tokens, demand.out_tokens = r.out_tokens, demand.max_queue = kMostBatch;
  if (r.kind == kGeometric)
    demand.in_cv = geometric_cv(r.in_tokens), demand.out_cv = geometric_cv(r.out_tokens);
  if (r.kind == kLognormal) demand.in_cv = kLognormalInCv, demand.out_cv = kLognormalOutCv;
  return demand;
}

CalibratedQueue queue_of(const Replica& r) {
  return {demand_of(r), r.performance, r.batch};
}

Figures by_closed_form(const CalibratedQueue& queue, double rate) {
  const Operation o = queue.at(rate);
  const Percentiles p = Latencies(queue, rate).percentiles();
  return {o.ttft_ms, p.ttft_ms[0], p.ttft_ms[2], p.ttft_ms[3], o.itl_ms, p.itl_ms[2]};
}

/// What the calibrated model said before it knew variation: the averages alone.
Figures by_equal_lengths(const Replica& r, double rate) {
  const Performance& p = r.performance;
  const Operation o = ReferenceQueue({r.in_tokens, r.out_tokens, p.alpha_ms, p.beta_ms, p.gamma_ms,
                                      r.batch, kMostBatch})
                          .at(rate);
  return {o.ttft_ms, NAN, NAN, NAN, o.itl_ms, NAN};
}

std::vector<Request> requests_of(const Replica& r, std::size_t count, std::uint64_t seed) {
  const Lengths in{r.kind, r.in_tokens, kLognormalInCv, {}};
  const Lengths out{r.kind, r.out_tokens, kLognormalOutCv, {}};
  return draw_requests({in, out, 1}, count, seed);
}

Figures simulated(const Replica& r, std::span<const Request> requests, double rate) {
  const Performance& p = r.performance;
  const Deployment deployment{{p.alpha_ms, p.beta_ms, p.gamma_ms, p.beta_ms, p.form}, r.batch};
  const Window window = steady_window(requests, 1 / rate, 0.1);
  const Outcome o = simulate(deployment, requests, 1 / rate, window, 1);
  double sum = 0;
  for (const double ms : o.ttft_ms) sum += ms;
  const auto ttft = quantiles(o.ttft_ms, kParts);
  return {sum / static_cast<double>(o.ttft_ms.size()),
          ttft[0],
          ttft[1],
          ttft[2],
          o.itl.mean_ms(),
          o.itl.quantiles_ms(std::span(kParts).subspan(1, 1))[0]};
}

struct Setting {
  double utilisation = 0;
  Figures before{}, after{}, simulated{};
};

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> made;
    for (const Replica& r : kReplicas)
      for (const double u : kUtilisations) {
        const CalibratedQueue queue = queue_of(r);
        const double rate = u * queue.service_rate(r.batch);
        Setting setting{u, by_equal_lengths(r, rate), by_closed_form(queue, rate), {}};
        const std::size_t count = u < 0.8 ? 150'000 : 800'000;
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          const Figures found = simulated(r, requests_of(r, count, seed), rate);
          for (std::size_t i = 0; i < kFigures; ++i) setting.simulated[i] += found[i] / 3;
        }
        made.push_back(setting);
      }
    return made;
  }();
  return all;
}

/// Median, 90th percentile and worst in %; "-": it has no such figure.
std::string summary(std::vector<double> errors) {
  if (errors.empty() || std::isnan(errors[0])) return "-";
  std::ranges::sort(errors, {}, [](double e) { return std::abs(e); });
  const auto at = [&](std::size_t tenths) {
    return std::abs(errors[(errors.size() - 1) * tenths / 10]);
  };
  return fmt::format("{:.1f} ({:.0f}; {:+.0f})", at(5), at(9), errors.back());
}

/// The error of one figure: of all settings, of u <= 0.7, of u >= 0.85, before and after.
void BM_FleetClosedForm(benchmark::State& state) {
  const auto figure = static_cast<std::size_t>(state.range(0));
  std::array<std::vector<double>, 4> errors;
  for (auto _ : state) {
    errors = {};
    for (const Setting& s : settings()) {
      const auto error = [&](const Figures& of) {
        return 100 * (of[figure] / s.simulated[figure] - 1);
      };
      errors[0].push_back(error(s.before));
      errors[1].push_back(error(s.after));
      errors[s.utilisation < 0.8 ? 2 : 3].push_back(error(s.after));
    }
  }
  state.SetLabel(fmt::format("{}: before {}, after {}, u <= 0.7 {}, u >= 0.85 {}", kNames[figure],
                             summary(errors[0]), summary(errors[1]), summary(errors[2]),
                             summary(errors[3])));
}
BENCHMARK(BM_FleetClosedForm)->DenseRange(0, kFigures - 1)->Iterations(1);

struct Limit {
  Figure figure;
  double factor;  // of the figure of a nearly idle replica
};
constexpr std::array<Limit, 5> kLimits{
    {{kTtft, 2}, {kTtft95, 6}, {kTtft95, 2}, {kTtft99, 4}, {kItl95, 1.3}}};

/// The greatest rate up to `end` at which the figure is within the target.
template <class FiguresAt>
double limit_of(double end, std::size_t figure, double target_ms, const FiguresAt& figures_at) {
  double low = 0, high = end;
  for (int i = 0; i < 12; ++i) {
    const double middle = (low + high) / 2;
    (figures_at(middle)[figure] <= target_ms ? low : high) = middle;
  }
  return low;
}

/// The limit by the closed form / the limit by simulation, of the nine replicas.
void BM_FleetClosedFormLimit(benchmark::State& state) {
  const Limit limit = kLimits[static_cast<std::size_t>(state.range(0))];
  std::vector<double> errors, before;
  for (auto _ : state)
    for (const Replica& r : kReplicas) {
      const CalibratedQueue queue = queue_of(r);
      const double end = 0.999 * queue.service_rate(r.batch);
      const auto requests = requests_of(r, 80'000, 5);
      const auto by_simulation = [&](double rate) { return simulated(r, requests, rate); };
      const double target_ms = limit.factor * by_simulation(0.02 * end)[limit.figure];
      const double should = limit_of(end, limit.figure, target_ms, by_simulation);
      errors.push_back(100 * (limit_of(end, limit.figure, target_ms,
                                       [&](double rate) { return by_closed_form(queue, rate); }) /
                                  should -
                              1));
      before.push_back(100 * (limit_of(end, limit.figure, target_ms,
                                       [&](double rate) { return by_equal_lengths(r, rate); }) /
                                  should -
                              1));
    }
  const auto range = std::ranges::minmax(errors);
  state.SetLabel(fmt::format("{} at {} x idle: {}, {:+.1f} to {:+.1f}; before {}",
                             kNames[limit.figure], limit.factor, summary(errors), range.min,
                             range.max, limit.figure == kTtft ? summary(before) : "-"));
}
BENCHMARK(BM_FleetClosedFormLimit)->DenseRange(0, kLimits.size() - 1)->Iterations(1);

/// The limit that a plan has from the simulator / that of twenty times as many other requests, for
/// the targets of percentiles and the replicas whose lengths a document can name.
void BM_FleetSimulatedLimit(benchmark::State& state) {
  std::vector<double> errors;
  for (auto _ : state)
    for (const Replica& r : kReplicas)
      for (const Limit& limit : std::span(kLimits).subspan(1)) {
        if (r.kind == kGeometric) continue;
        const CalibratedQueue queue = queue_of(r);
        const double end = 0.999 * queue.service_rate(r.batch);
        const auto requests = requests_of(r, 800'000, 5);
        const auto by_simulation = [&](double rate) { return simulated(r, requests, rate); };
        const double target_ms = limit.factor * by_simulation(0.02 * end)[limit.figure];
        const double should = limit_of(end, limit.figure, target_ms, by_simulation);
        RateQuestion question;
        question.performance = r.performance, question.batch = r.batch;
        const Demand demand = demand_of(r);
        question.load = {.in_tokens = r.in_tokens, .out_tokens = r.out_tokens};
        question.load.in_cv = demand.in_cv, question.load.out_cv = demand.out_cv;
        question.queue = kMostBatch;
        auto& targets = limit.figure == kItl95 ? question.target.percentiles.itl_ms
                                               : question.target.percentiles.ttft_ms;
        targets[limit.figure == kTtft99 ? 3 : 2] = target_ms;
        question.estimate_per_s = 500 * end;
        errors.push_back(100 * (simulated_limit(question) / (1000 * should) - 1));
      }
  const auto range = std::ranges::minmax(errors);
  state.SetLabel(
      fmt::format("{} settings: {}, {:+.1f} to {:+.1f}; within 3 %: {}", errors.size(),
                  summary(errors), range.min, range.max,
                  std::ranges::count_if(errors, [](double e) { return std::abs(e) <= 3; })));
}
BENCHMARK(BM_FleetSimulatedLimit)->Iterations(1);

}  // namespace
}  // namespace berth::fleet
