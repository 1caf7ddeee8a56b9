#include "berth/experiment/stopping/curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace berth::experiment {
namespace {

constexpr std::size_t kFewest = 4;
constexpr int kRates = 24;
constexpr double kRoughness = 1e-4;  // the square of a hundredth of what the reports range over

/// How much of the way is left at step x: falls from 1 towards 0, sooner the greater the rate.
using Family = double (*)(double x, double rate);
constexpr std::array<Family, 4> kFamilies{
    [](double x, double rate) { return std::pow(x, -rate); },
    [](double x, double rate) { return std::exp(-rate * (x - 1)); },
    [](double x, double rate) { return 1 / (1 + rate * (x - 1)); },
    [](double x, double rate) { return 1 / (1 + rate * std::log(x)); },
};

/// From 0.01 to 10, even in the exponent.
double rate_of(int index) {
  return std::pow(10, -2 + 3.0 * index / (kRates - 1));
}

/// limit - drop · (what is left), the drop at least 0.
struct Fit {
  double errors = 0;  // squares of
  double ahead = 0;   // its value at the step that is asked for
  double doubt = 0;   // of that, in squares of the noise
};

Fit fit(std::span<const double> values, double at, Family family, double rate) {
  const auto count = static_cast<double>(values.size());
  double left_sum = 0, value_sum = 0;
  std::vector<double> left;
  for (std::size_t i = 0; i < values.size(); ++i) {
    left.push_back(family(static_cast<double>(i + 1), rate));
    left_sum += left.back();
    value_sum += values[i];
  }
  const double left_mean = left_sum / count, value_mean = value_sum / count;
  double together = 0, spread = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    together += (left[i] - left_mean) * (values[i] - value_mean);
    spread += (left[i] - left_mean) * (left[i] - left_mean);
  }
  const double slope = spread > 0 ? std::min(0.0, together / spread) : 0;
  Fit result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = values[i] - value_mean - slope * (left[i] - left_mean);
    result.errors += error * error;
  }
  const double beyond = family(at, rate) - left_mean;
  result.ahead = value_mean + slope * beyond;
  result.doubt = 1 + 1 / count + (spread > 0 ? beyond * beyond / spread : 0);
  return result;
}

}  // namespace

std::optional<double> chance_to_exceed(std::span<const double> values, std::int64_t at,
                                       double target) {
  if (values.size() < kFewest) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(values);
  const double range = high - low;
  if (range == 0) return low > target ? 1 : 0;
  if (!std::isfinite(range)) return std::nullopt;
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back((value - low) / range);
  const double wanted = (target - low) / range;
  std::vector<Fit> fits;
  for (const auto family : kFamilies)
    for (int i = 0; i < kRates; ++i)
      fits.push_back(fit(scaled, static_cast<double>(at), family, rate_of(i)));
  const double least = std::ranges::min_element(fits, {}, &Fit::errors)->errors;
  // Three numbers are fitted. However smooth the reports are, the curve is only nearly of a family.
  const double noise = std::max(least / static_cast<double>(values.size() - 3), kRoughness);
  double chance = 0, weights = 0;
  for (const auto& each : fits) {
    const double weight = std::exp((least - each.errors) / (2 * noise));
    const double deviation = std::sqrt(noise * each.doubt);
    weights += weight;
    chance += weight * 0.5 * std::erfc((wanted - each.ahead) / deviation / std::numbers::sqrt2);
  }
  return chance / weights;
}

}  // namespace berth::experiment
