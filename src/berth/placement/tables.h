// The value of every subset of a machine of up to kExactDevices, for lookup by the searches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "berth/placement/scores.h"

namespace berth::placement {

/// A Value in one number with the same order; sums of keys are keys of sums. A key is never
/// negative: the 120 pairs of 16 devices come to less than 2^27, which leaves room to multiply a
/// key by 256.
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

  /// Makes the tables of at most kExactDevices.
  explicit Tables(const Scores& scores);

  /// The keys of all sets, by their bits.
  std::span<const Key> keys(Objective objective) const { return of(objective).keys; }
  /// The greatest key of a set's subsets of `count` devices, by the bits of the set; 0 for a
  /// smaller set.
  std::span<const Key> best_within(Objective objective, int count) const {
    return of(objective).best_within[static_cast<std::size_t>(count)];
  }
  /// Scores::local_pairs() of all sets, by their bits; empty where it tells no two sets of one size
  /// apart.
  std::span<const std::uint8_t> local_pairs() const { return local_pairs_; }
  /// The representative of all sets that differ from this one in interchangeable devices only
  /// (alike.h).
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
  std::vector<std::uint8_t> local_pairs_;
};

}  // namespace berth::placement
