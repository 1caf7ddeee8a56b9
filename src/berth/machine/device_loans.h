// What of a machine's devices is lent, and what that leaves. Owned and used as a Machine is.
#pragma once

#include <span>
#include <vector>

#include "berth/machine/device_shares.h"

namespace berth::machine {

class DeviceLoans {
 public:
  /// Nothing is lent of these yet; ascending by index.
  void begin(std::vector<DeviceShare> total);
  /// `sign` 1: lent, -1: back. Of a device that is not ours (any more) there is nothing to count.
  void lend(const DeviceShare& share, int sign);

  bool has(const DeviceShare& share) const { return place_of(share) < total_.size(); }
  /// More is lent of some device than it has.
  bool overdrawn() const;
  std::span<const DeviceShare> total() const { return total_; }
  /// Of each device what may still be lent, at least 0; `whole`: all of it.
  std::span<const DeviceShare> free() const { return free_; }

 private:
  struct Lent {
    std::int64_t memory = 0, slots = 0, holders = 0;
    std::int64_t whole = 0;  // holders of all of it
  };
  std::size_t place_of(const DeviceShare& share) const;

  std::vector<DeviceShare> total_;
  std::vector<Lent> lent_;
  std::vector<DeviceShare> free_;
};

/// The gpu, gpu_mem and gpu_slots that these shares are, in place of those in `resources`.
void set_device_amounts(std::span<const DeviceShare> shares, Resources& resources);

}  // namespace berth::machine
