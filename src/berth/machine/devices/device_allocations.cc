#include "berth/machine/devices/device_allocations.h"

#include <algorithm>

namespace berth::machine {

void DeviceAllocations::begin(std::vector<DeviceShare> total) {
  total_ = std::move(total);
  allocated_.assign(total_.size(), {});
  free_ = total_;
}

void DeviceAllocations::count(const DeviceShare& share, int sign) {
  const std::size_t at = place_of(share);
  if (at == total_.size()) return;
  Allocated& allocated = allocated_[at];
  allocated.memory += sign * share.memory;
  allocated.slots += sign * share.slots;
  allocated.holders += sign;
  allocated.whole += share.whole ? sign : 0;
  DeviceShare& free = free_[at];
  const bool any =
      allocated.whole == 0;  // a device of unknown memory has none to show that it is taken
  free.memory = any ? std::max<std::int64_t>(0, total_[at].memory - allocated.memory) : 0;
  free.slots =
      any ? static_cast<int>(std::max<std::int64_t>(0, total_[at].slots - allocated.slots)) : 0;
  free.whole = total_[at].whole && allocated.holders == 0;
}

bool DeviceAllocations::overdrawn() const {
  for (std::size_t i = 0; i < total_.size(); ++i) {
    const Allocated& allocated = allocated_[i];
    if (allocated.memory > total_[i].memory || allocated.slots > total_[i].slots) return true;
    if (allocated.whole > 0 && allocated.holders > 1) return true;
  }
  return false;
}

std::size_t DeviceAllocations::place_of(const DeviceShare& share) const {
  return static_cast<std::size_t>(std::ranges::find(total_, share.uuid, &DeviceShare::uuid) -
                                  total_.begin());
}

void set_device_amounts(std::span<const DeviceShare> shares, Resources& resources) {
  std::int64_t whole = 0, memory = 0, slots = 0;
  for (const DeviceShare& share : shares) {
    whole += share.whole ? 1 : 0;
    memory += share.memory;
    slots += share.slots;
  }
  resources.set(Known::gpu, whole);
  resources.set(Known::gpu_mem, memory);
  resources.set(Known::gpu_slots, slots);
}

}  // namespace berth::machine
