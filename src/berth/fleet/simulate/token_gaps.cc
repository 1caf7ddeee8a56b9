#include "berth/fleet/simulate/token_gaps.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth::fleet {

/// Counts tokens by the leading bits of their times: as positive doubles are ordered as their bits
/// are, a bucket is a range of times. What is in one bucket can be counted by more bits.
class TokenGaps::Histogram {
 public:
  Histogram(std::span<const Run> runs, int shift) : runs_(runs), shift_(shift) {
    std::uint64_t least = UINT64_MAX, most = 0;
    for (const Run& run : runs) {
      least = std::min(least, bucket_of(run.first_ms));
      most = std::max(most, bucket_of(run.at(run.count - 1)));
    }
    least_ = least;
    tokens_.resize(most - least + 1);
    for (const Run& run : runs)
      for_each_piece(run, [&](std::uint64_t bucket, std::int64_t begin, std::int64_t end) {
        tokens_[bucket - least_] += (end - begin) * run.tokens;
      });
  }

  /// The bucket of the rank-th token, from 1, and what of the rank is left within it.
  std::uint64_t find(std::int64_t& rank) const {
    std::size_t i = 0;
    for (; rank > tokens_[i]; ++i) rank -= tokens_[i];
    return least_ + i;
  }

  std::vector<Run> within(std::uint64_t bucket) const {
    std::vector<Run> pieces;
    for (const Run& run : runs_) {
      if (bucket_of(run.first_ms) > bucket || bucket_of(run.at(run.count - 1)) < bucket) continue;
      for_each_piece(run, [&](std::uint64_t of, std::int64_t begin, std::int64_t end) {
        if (of == bucket) pieces.push_back({run.at(begin), run.step_ms, end - begin, run.tokens});
      });
    }
    return pieces;
  }

 private:
  std::uint64_t bucket_of(double ms) const { return std::bit_cast<std::uint64_t>(ms) >> shift_; }

  template <class Use>
  void for_each_piece(const Run& run, Use use) const {
    const std::uint64_t last = bucket_of(run.at(run.count - 1));
    std::int64_t begin = 0;
    for (std::uint64_t bucket = bucket_of(run.first_ms); bucket < last;
         bucket = bucket_of(run.at(begin))) {
      const std::int64_t end = first_beyond(run, bucket, begin);
      use(bucket, begin, end);
      begin = end;
    }
    use(last, begin, run.count);
  }

  /// The first iteration behind `begin` whose time is beyond the bucket; there is one.
  std::int64_t first_beyond(const Run& run, std::uint64_t bucket, std::int64_t begin) const {
    const auto edge_ms = std::bit_cast<double>((bucket + 1) << shift_);
    const double guess = std::ceil((edge_ms - run.first_ms) / run.step_ms);
    auto i = std::clamp(static_cast<std::int64_t>(std::min(guess, 1e18)), begin + 1, run.count - 1);
    while (i > begin + 1 && bucket_of(run.at(i - 1)) > bucket) --i;
    while (i < run.count - 1 && bucket_of(run.at(i)) <= bucket) ++i;
    return i;
  }

  std::span<const Run> runs_;
  int shift_;
  std::uint64_t least_ = 0;
  std::vector<std::int64_t> tokens_;  // by bucket, from least_ on
};

void TokenGaps::add(const TokenGaps& others) {
  runs_.insert(runs_.end(), others.runs_.begin(), others.runs_.end());
  tokens_ += others.tokens_;
  sum_ms_ += others.sum_ms_;
}

std::vector<double> TokenGaps::quantiles_ms(std::span<const double> parts) const {
  std::vector<double> quantiles(parts.size());
  if (runs_.empty()) return quantiles;
  constexpr int kCoarse = 43, kFine = 10;  // buckets of 2⁻⁹, then each 2⁻¹⁰ of the one before
  const Histogram coarse(runs_, kCoarse);
  for (std::size_t q = 0; q < parts.size(); ++q) {
    auto rank = static_cast<std::int64_t>(std::ceil(parts[q] * static_cast<double>(tokens_)));
    rank = std::clamp<std::int64_t>(rank, 1, tokens_);
    const auto bucket = coarse.find(rank);
    std::vector<Run> left = coarse.within(bucket);
    for (int shift = kCoarse - kFine; shift >= kCoarse - 2 * kFine; shift -= kFine) {
      const Histogram fine(left, shift);
      const auto next = fine.find(rank);
      left = fine.within(next);
    }
    quantiles[q] = left.front().first_ms;
  }
  return quantiles;
}

}  // namespace berth::fleet
