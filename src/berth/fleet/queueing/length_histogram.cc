#include "berth/fleet/queueing/length_histogram.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/queueing/queue.h"

namespace berth::fleet {
namespace {

constexpr double kMostWeight = 1e12;
constexpr double kFigureRounding = 0.005;  // part of a figure
constexpr double kTokenRounding = 0.5;     // other planners have whole tokens

Status check_bin(const LengthHistogram::Bin& bin, std::size_t at) {
  if (!(bin.tokens > 0 && bin.tokens <= kMostTokens))
    return fail(ErrorKind::invalid, "[{0}].tokens: expected more than 0 and at most {2}, got {1}",
                at, bin.tokens, kMostTokens);
  if (!(bin.weight >= 0 && bin.weight <= kMostWeight))
    return fail(ErrorKind::invalid, "[{0}].weight: expected 0 to {2}, got {1}", at, bin.weight,
                kMostWeight);
  return {};
}

}  // namespace

Result<LengthHistogram> LengthHistogram::of(std::vector<Bin> bins) {
  if (bins.size() > kMostBins)
    return fail(ErrorKind::invalid, "expected at most {1} bins, got {0}", bins.size(), kMostBins);
  for (std::size_t i = 0; i < bins.size(); ++i) BERTH_TRY(check_bin(bins[i], i));
  std::ranges::sort(bins, {}, &Bin::tokens);
  if (const auto twice = std::ranges::adjacent_find(bins, {}, &Bin::tokens); twice != bins.end())
    return fail(ErrorKind::invalid, "{} tokens are given twice", twice->tokens);
  std::erase_if(bins, [](const Bin& bin) { return bin.weight == 0; });
  if (bins.empty()) return fail(ErrorKind::invalid, "no bin has a weight");
  Shape shape;
  double all = 0, variance = 0;
  for (const Bin& bin : bins) all += bin.weight;
  for (const Bin& bin : bins) {
    shape.parts.push_back(bin.weight / all);
    shape.mean += shape.parts.back() * bin.tokens;
  }
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double ratio = bins[i].tokens / shape.mean;
    variance += shape.parts[i] * (ratio - 1) * (ratio - 1);
    shape.third += shape.parts[i] * ratio * ratio * ratio;
  }
  shape.cv = std::sqrt(variance);
  shape.bins = std::move(bins);
  LengthHistogram made;
  made.shape_ = std::make_shared<const Shape>(std::move(shape));
  return made;
}

std::span<const LengthHistogram::Bin> LengthHistogram::bins() const {
  return shape_ ? std::span(shape_->bins) : std::span<const Bin>{};
}

bool LengthHistogram::has_mean(double mean) const {
  return std::abs(mean - shape_->mean) <= std::max(kTokenRounding, kFigureRounding * shape_->mean);
}

bool LengthHistogram::has_cv(double cv) const {
  return std::abs(cv - shape_->cv) <= kFigureRounding * std::max(1.0, shape_->cv);
}

std::vector<LengthHistogram::Bin> LengthHistogram::stretched(double mean) const {
  std::vector<Bin> bins = shape_->bins;
  for (Bin& bin : bins) bin.tokens *= mean / shape_->mean;
  return bins;
}

std::partial_ordering operator<=>(const LengthHistogram& a, const LengthHistogram& b) {
  if (a.shape_ == b.shape_) return std::partial_ordering::equivalent;
  const auto of_a = a.bins(), of_b = b.bins();
  return std::lexicographical_compare_three_way(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
}

}  // namespace berth::fleet
