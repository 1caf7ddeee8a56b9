#include "berth/fleet/fit/fit_checks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace berth::fleet {
namespace {

/// A point against the times of its own iterations, or, where these are not known, against what its
/// load means.
PointCheck check_point(const FitParameters& parameters, const OperatingPoint& point,
                       const PointUse& use, std::span<const Observation> of_point) {
  PointCheck check{.name = point.name,
                   .rate_per_s = point.rate_per_s,
                   .concurrency = point.concurrency,
                   .in_tokens = point.in_tokens.mean,
                   .out_tokens = point.out_tokens.mean,
                   .itl_ms = point.itl_ms.mean,
                   .ttft_ms = point.ttft_ms.mean};
  if (point.timeline.empty()) {
    const MeanTimes times = mean_times(load_of(point), parameters);
    check.predicted_itl_ms = times.itl_ms;
    if (!use.saturated && !use.cached) check.predicted_ttft_ms = times.ttft_ms;
    return check;
  }
  double predicted[2]{}, measured[2]{};
  for (const auto& o : of_point) {
    const bool first = o.phase == Phase::ttft;
    predicted[first] += predicted_ms(parameters, o);
    measured[first] += o.ms;
  }
  if (measured[0] > 0) check.predicted_itl_ms = check.itl_ms * predicted[0] / measured[0];
  if (measured[1] > 0) check.predicted_ttft_ms = check.ttft_ms * predicted[1] / measured[1];
  return check;
}

}  // namespace

std::vector<PhaseErrors> phase_errors(const FitParameters& parameters,
                                      std::span<const Observation> all) {
  std::array<std::vector<double>, kPhases> of_phase;
  for (const auto& o : all)
    of_phase[static_cast<std::size_t>(o.phase)].push_back(
        std::abs(predicted_ms(parameters, o) / o.ms - 1));
  std::vector<PhaseErrors> errors;
  for (std::size_t p = 0; p < kPhases; ++p) {
    auto& values = of_phase[p];
    if (values.empty()) continue;
    std::ranges::sort(values);
    errors.push_back({static_cast<Phase>(p), values.size(), values[values.size() / 2],
                      values[(values.size() - 1) * 9 / 10]});
  }
  return errors;
}

std::vector<PointCheck> check_points(const FitParameters& parameters, const Measured& measured,
                                     std::span<const PointUse> use,
                                     std::span<const Observation> all) {
  std::vector<PointCheck> checks;
  std::size_t at = 0;  // observations stand in the order of their points, behind single iterations
  while (at < all.size() && all[at].point == Observation::kNoPoint) ++at;
  for (std::size_t i = 0; i < use.size(); ++i) {
    const std::size_t from = at;
    while (at < all.size() && all[at].point == i) ++at;
    if (use[i].used)
      checks.push_back(
          check_point(parameters, measured.points[i], use[i], all.subspan(from, at - from)));
  }
  return checks;
}

Held hold(const FitParameters& parameters, const Measured& measured, const FitOptions& options) {
  Held held;
  const auto use =
      judge_points(measured, options.all, parameters.ms[Term::beta_prefill], held.notes);
  const auto all = observations(measured, use, parameters);
  held.errors = phase_errors(parameters, all);
  held.points = check_points(parameters, measured, use, all);
  for (auto& point : held.points) point.held_out = true;
  return held;
}

}  // namespace berth::fleet
