// The checked score matrix of a machine, and the value of a set of its devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "berth/placement/subsets.h"

namespace berth::placement {

inline constexpr std::int32_t kMostScore = 1'000'000;

class Scores {
 public:
  /// Errors: invalid if it is no matrix of that many devices, a score is out of range, or a pair is
  /// asymmetric; names the pair.
  static Result<Scores> make(std::span<const std::int32_t> row_major, int devices);

  int devices() const { return devices_; }
  DeviceSet all() const { return first(devices_); }
  std::int32_t operator()(int a, int b) const { return row_major_[place(a, b)]; }
  std::span<const std::int32_t> row_major() const { return row_major_; }
  /// Sets the NUMA node of each device; a device with a negative number is alone on its node.
  /// Without this call every device is.
  void set_nodes(std::span<const int> nodes);
  /// The devices on the NUMA node of `device`, without itself.
  DeviceSet node_of(int device) const { return nodes_[static_cast<std::size_t>(device)]; }
  /// The number of pairs in the set whose devices are on one NUMA node: the more, the closer.
  int local_pairs(DeviceSet set) const;

  /// The devices of the set alone, renumbered from 0 in their order.
  Scores of(DeviceSet set) const;

  std::int64_t sum(DeviceSet set) const;
  /// The sum of the scores of `device` with all devices of the set.
  std::int64_t links(int device, DeviceSet set) const;
  /// The weakest pair; 0 for fewer than two devices.
  std::int64_t weakest(DeviceSet set) const;

 private:
  explicit Scores(int devices);
  std::size_t place(int a, int b) const { return static_cast<std::size_t>(a * devices_ + b); }

  int devices_;
  std::vector<std::int32_t> row_major_;
  std::vector<DeviceSet> nodes_;  // for each device the others on its node
};

/// Exact for sets of up to kExactDevices; the ring of a larger one is the best found.
Value value_of(const Scores& scores, DeviceSet set, Objective objective);
/// Faster and never greater: the ring of a set of more than kQuickRingDevices is the best found.
Value quick_value_of(const Scores& scores, DeviceSet set, Objective objective);

}  // namespace berth::placement
