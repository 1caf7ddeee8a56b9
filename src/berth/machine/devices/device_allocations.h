// What of a machine's devices is held, and what is free. It is owned and used by a Machine.
#pragma once

#include <span>
#include <vector>

#include "berth/machine/devices/device_shares.h"

namespace berth::machine {

class DeviceAllocations {
 public:
  /// Begins with these devices, ascending by index, all free.
  void begin(std::vector<DeviceShare> total);
  /// Counts a share as held (`sign` 1) or given back (-1). A device that is not there is ignored.
  void count(const DeviceShare& share, int sign);

  bool has(const DeviceShare& share) const { return place_of(share) < total_.size(); }
  /// Whether more of some device is held than it has.
  bool overdrawn() const;
  std::span<const DeviceShare> total() const { return total_; }
  /// What is free of each device, at least 0; `whole`: all of it.
  std::span<const DeviceShare> free() const { return free_; }

 private:
  struct Allocated {
    std::int64_t memory = 0, slots = 0, holders = 0;
    std::int64_t whole = 0;  // holders of the whole device
  };
  std::size_t place_of(const DeviceShare& share) const;

  std::vector<DeviceShare> total_;
  std::vector<Allocated> allocated_;
  std::vector<DeviceShare> free_;
};

/// Sets gpu, gpu_mem and gpu_slots of `resources` to those of the shares.
void set_device_amounts(std::span<const DeviceShare> shares, Resources& resources);

}  // namespace berth::machine
