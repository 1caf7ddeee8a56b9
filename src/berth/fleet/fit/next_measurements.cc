#include "berth/fleet/fit/next_measurements.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/fit/observations.h"

namespace berth::fleet {
namespace {

constexpr std::array<int, 9> kConcurrency{1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr std::array<int, 5> kInTokens{128, 512, 1024, 2048, 4096};

void add_row(TermMatrix& to, const Terms& x, double noise_ms) {
  for (std::size_t i = 0; i < kTerms; ++i)
    for (std::size_t j = 0; j < kTerms; ++j)
      to[i].at(j) += x.at(i) * x.at(j) / (noise_ms * noise_ms);
}

/// What a closed loop would tell; all 0 where the server cannot take it.
TermMatrix told_by(const FitParameters& parameters, const NextMeasurement& next) {
  const double n = next.in_tokens, m = next.out_tokens;
  MeanLoad load{.rate_per_ms = 0,
                .max_concurrency = static_cast<double>(next.concurrency),
                .in_tokens = n,
                .in_square = n * n,
                .out_tokens = m,
                .out_square = m * m,
                .itl_ms = 0};
  const MeanTimes times = mean_times(load, parameters);
  TermMatrix told{};
  if (!(times.itl_ms > 0) || !(times.ttft_ms > 0)) return told;
  load.itl_ms = times.itl_ms;
  load.rate_per_ms = load.max_concurrency / (times.ttft_ms + (m - 1) * times.itl_ms);
  const auto mean = mean_observations(load, parameters);
  add_row(told, design_row(parameters, mean.itl), kItlNoise * times.itl_ms);
  add_row(told, design_row(parameters, mean.ttft), kTtftNoise * times.ttft_ms);
  return told;
}

TermMatrix sum_of(TermMatrix a, const TermMatrix& b) {
  for (std::size_t i = 0; i < kTerms; ++i)
    for (std::size_t j = 0; j < kTerms; ++j) a[i].at(j) += b[i].at(j);
  return a;
}

}  // namespace

NextMeasurements next_measurements(const FitParameters& parameters, const TermMatrix& information,
                                   const TermMask& mask, double out_tokens, double most_context) {
  // Before any measurement a term is known to within itself; of one that is 0, to within what it
  // would take to matter.
  Terms scale{};
  const double alpha = std::max(1e-3, parameters.ms[Term::alpha]);
  const Terms least{alpha, alpha / 1000, alpha / 1000, alpha / 1e6, alpha};
  for (std::size_t i = 0; i < kTerms; ++i) scale.at(i) = std::max(least.at(i), parameters.ms.at(i));
  std::vector<NextMeasurement> grid;
  std::vector<TermMatrix> told;
  for (const int concurrency : kConcurrency)
    for (const int in : kInTokens) {
      if (concurrency * (in + out_tokens) > most_context) continue;
      grid.push_back({concurrency, in, std::max(2, static_cast<int>(out_tokens))});
      told.push_back(told_by(parameters, grid.back()));
    }
  NextMeasurements best;
  double most = -HUGE_VAL;
  for (std::size_t a = 0; a < grid.size(); ++a)
    for (std::size_t b = a + 1; b < grid.size(); ++b) {
      const auto all = sum_of(sum_of(information, told[a]), told[b]);
      const auto left = information_of(all, mask, scale);
      if (left.log_det <= most) continue;
      most = left.log_det;
      best.measurements = {grid[a], grid[b]};
      for (std::size_t i = 0; i < kTerms; ++i)
        best.standard_error.at(i) = std::sqrt(left.variance.at(i));
    }
  return best;
}

}  // namespace berth::fleet
