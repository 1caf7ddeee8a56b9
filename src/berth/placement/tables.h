// What every subset of a machine of up to kExactDevices is worth, so that a search looks it up.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/placement/scores.h"

namespace berth::placement {

/// A Value in one number that compares as it does; sums of keys are keys of sums. Never negative:
/// the 120 pairs of 16 devices come to less than 2^27, which leaves room to multiply a key by 256.
using Key = std::int64_t;
inline constexpr int kSecondBits = 28;
static_assert(std::int64_t{kMostScore} * kExactDevices * (kExactDevices - 1) / 2 < 1 << 27);

constexpr Key key(const Value& value) {
  return (value.first << kSecondBits) + value.second;
}

constexpr Value value(Key key) {
  return {key >> kSecondBits, key & ((Key{1} << kSecondBits) - 1)};
}

class Tables {
 public:
  /// best_within() knows the best subsets of 1 to so many devices.
  static constexpr int kMostWithin = 8;

  /// At most kExactDevices.
  explicit Tables(const Scores& scores);

  /// By the bits of the set.
  std::span<const Key> keys(Objective objective) const { return of(objective).keys; }
  /// By the bits of a set: the greatest key of its subsets of `count` devices; 0 where it is
  /// smaller.
  std::span<const Key> best_within(Objective objective, int count) const {
    return of(objective).best_within[static_cast<std::size_t>(count)];
  }
  /// Of the set and those that only devices which are alike tell from it; see alike.h.
  DeviceSet representative(DeviceSet set) const {
    return representatives_.empty() ? set : representatives_[set];
  }

 private:
  struct Table {
    std::vector<Key> keys;
    std::array<std::vector<Key>, kMostWithin + 1> best_within;
  };
  const Table& of(Objective objective) const {
    return tables_[static_cast<std::size_t>(objective)];
  }

  std::array<Table, kObjectives> tables_;
  std::vector<std::uint16_t> representatives_;
};

}  // namespace berth::placement
