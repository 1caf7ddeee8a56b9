// How the tokens of a server's requests are distributed where a fleet document tells it bin by bin.
// docs/reference/fleet-documents.md, "Histograms of lengths".
//
// Pure; any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "berth/base/result.h"

namespace berth::fleet {

/// A histogram of lengths in tokens, or none. It tells a shape: about another mean than its own all
/// lengths are longer or shorter by the same factor, so that whoever changes a mean changes nothing
/// here. An immutable value: copies share the bins; it is compared and ordered by its bins.
class LengthHistogram {
 public:
  struct Bin {
    double tokens = 0;  // above 0
    double weight = 0;  // its part of all weights is the probability
    auto operator<=>(const Bin&) const = default;
  };
  static constexpr std::size_t kMostBins = 1000;

  LengthHistogram() = default;
  /// Bins in any order, of which those without weight are left out. Errors: invalid, what is wrong,
  /// after the bin where it is one, "[3].weight: …": tokens that are not above 0 or beyond 10⁷,
  /// twice the same tokens, weights that are negative, not finite or beyond 10¹², no weight at all,
  /// more than kMostBins.
  static Result<LengthHistogram> of(std::vector<Bin> bins);

  explicit operator bool() const { return shape_ != nullptr; }
  /// By tokens, ascending; the weights as they were given. None without a histogram.
  std::span<const Bin> bins() const;
  // Of these there has to be a histogram.
  double mean() const { return shape_->mean; }
  double cv() const { return shape_->cv; }        // standard deviation / mean
  double third() const { return shape_->third; }  // E (tokens / mean)³
  /// Whether a mean, or a coefficient of variation, is that of the bins but for rounding: to whole
  /// tokens, or by half a percent.
  bool has_mean(double mean) const;
  bool has_cv(double cv) const;
  /// The bins about a mean, with their weights; about their own as they were given.
  std::vector<Bin> stretched(double mean) const;

  /// Calls visit(tokens, probability) for each bin of the histogram about a mean.
  template <class Visit>
  void each(double mean, const Visit& visit) const {
    const double factor = mean / shape_->mean;
    for (std::size_t i = 0; i < shape_->bins.size(); ++i)
      visit(shape_->bins[i].tokens * factor, shape_->parts[i]);
  }

  friend bool operator==(const LengthHistogram& a, const LengthHistogram& b) {
    return (a <=> b) == 0;
  }
  friend std::partial_ordering operator<=>(const LengthHistogram& a, const LengthHistogram& b);

 private:
  struct Shape {
    std::vector<Bin> bins;
    std::vector<double> parts;  // of the weights: they add up to 1
    double mean = 0, cv = 0, third = 0;
  };
  std::shared_ptr<const Shape> shape_;
};

}  // namespace berth::fleet
