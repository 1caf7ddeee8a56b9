// Search where there are too many devices for tables: more than kExactDevices, up to kMostDevices.
// Seeds grown greedily and bettered by swaps give a good answer; branch and bound then proves it
// the best or says how much better one could be. Deterministic: the work is counted, not timed.
#pragma once

#include "berth/placement/scores.h"

namespace berth::placement {

struct Found {
  DeviceSet devices = 0;  // empty when there is no such set
  Value bound;            // no such set has a greater value
};

/// A set of the question's size that holds the required devices and is not `excluded`, of the
/// greatest quick_value_of() met while at most `iterations` sets were valued or bounded. Ties: the
/// set with the most pairs on one NUMA node, then the one that leaves the highest sum of pairs,
/// then the lowest indices.
Found find_set(const Scores& scores, const Question& question, std::int64_t iterations,
               DeviceSet excluded = 0);

struct FoundPartition {
  DeviceSet devices = 0;
  std::int64_t score = 0;  // sum of value_of(...).first over its sets
  std::int64_t bound = 0;  // no partition has a greater score
};

/// The policy best-effort by search: sets found one after another, then bettered by swaps of
/// devices between them.
FoundPartition find_partition(const Scores& scores, const Question& question,
                              std::int64_t iterations);

/// Upper bounds on the value of sets of `count` out of `available` by what each device can give.
class Limits {
 public:
  Limits(const Scores& scores, DeviceSet available, int count, Objective objective);

  /// An upper bound for any set of `taken` and some of `pool`, which together have at least
  /// `count`.
  Value of(DeviceSet taken, DeviceSet pool) const;
  /// The weakest link of any set that holds the device, and the sum of its links there.
  std::int64_t weakest(int device) const { return weakest_[static_cast<std::size_t>(device)]; }
  std::int64_t links(int device) const { return best_links(device, count_ - 1); }

 private:
  std::int64_t best_links(int device, int links) const {
    return best_links_[static_cast<std::size_t>(device)][static_cast<std::size_t>(links)];
  }
  std::int64_t sum_limit(DeviceSet taken, DeviceSet pool, int open) const;
  std::int64_t weakest_limit(DeviceSet taken, DeviceSet pool, int open) const;

  const Scores& scores_;
  int count_;
  Objective objective_;
  std::array<std::int64_t, kMostDevices> weakest_{};
  // Sum of the so many strongest links of a device to other available ones.
  std::array<std::array<std::int64_t, kMostDevices>, kMostDevices> best_links_{};
};

}  // namespace berth::placement
