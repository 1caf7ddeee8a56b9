// Device shares: which devices, or parts of devices, a request gets. A device is one GPU or one MIG
// instance. Pure; the same question has the same answer.
//
// A request with `gpu` alone gets that many whole devices. With `gpu_mem` or `gpu_slots` it gets a
// part of one device, or of as many as `gpu` says; then each of them gives the whole of gpu_mem and
// gpu_slots. A device of which a part is held is never handed out whole.
//
// Threads: one at a time for a DeviceLinks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/devices/device_selection.h"
#include "berth/placement/placement.h"
#include "berth/resource/resources.h"
#include "berth/topology/topology.h"

namespace berth::machine {

/// A share of a device: all of it, what is free of it, or what is held, as the context says.
struct DeviceShare {
  std::string uuid;
  int index = 0;            // as the machine counts them
  int node = -1;            // NUMA node; -1: unknown
  std::int64_t memory = 0;  // bytes
  int slots = 0;
  int size = 0;       // slots of the whole device
  bool whole = true;  // no other request has a part of it
  topology::Vendor vendor = topology::Vendor::nvidia;
  /// Bytes of the whole device; 0 in a part that was handed out elsewhere, where it has been
  /// checked.
  std::int64_t full_memory = 0;
  bool operator==(const DeviceShare&) const = default;
};

/// All of each device, healthy or not, by index. `slots`: patterns of model names for slots_of().
std::vector<DeviceShare> shares_of(const topology::Topology& topology,
                                   const std::vector<std::pair<std::string, int>>& slots = {});

/// Lists of visible devices as the drivers read them: UUIDs, beginnings of UUIDs or indices, up to
/// the first that names no device; nullopt: all.
struct VisibleDevices {
  std::optional<std::string> cuda;    // CUDA_VISIBLE_DEVICES
  std::optional<std::string> nvidia;  // NVIDIA_VISIBLE_DEVICES: may be "all"; none, void: no device
  std::optional<std::string> rocr;    // ROCR_VISIBLE_DEVICES
};

/// The shares that all of these lists name. A list counts all devices of its vendor.
std::vector<DeviceShare> visible_ones(std::vector<DeviceShare> shares,
                                      const VisibleDevices& visible);

/// How a machine's devices are joined. It is made once (16 devices: about 10 ms) and shared by the
/// machine's blocks.
class DeviceLinks {
 public:
  static Result<std::shared_ptr<DeviceLinks>> make(const topology::Topology& topology);
  /// The `count` of `devices` that the policy takes, with those of `must` among them (bit i for
  /// devices[i]); size of must <= count <= devices.size() <= kMostDevices. Errors: not_found for an
  /// unknown device; else those of the policy.
  Result<placement::DeviceSet> choose(std::span<const DeviceShare* const> devices,
                                      placement::DeviceSet must, int count,
                                      const DeviceSelection& selection);

 private:
  DeviceLinks(std::vector<std::string> uuids, placement::Chooser chooser)
      : uuids_(std::move(uuids)), chooser_(std::move(chooser)) {}
  std::vector<std::string> uuids_;
  placement::Chooser chooser_;
};

/// What a request needs of devices.
struct DeviceNeed {
  std::int64_t count = 0;
  std::int64_t memory = 0;  // bytes of each device
  std::int64_t slots = 0;   // of each device
  DeviceSelection selection = {};
  bool shared() const { return memory > 0 || slots > 0; }
};
DeviceNeed device_need(const Resources& wanted, DeviceSelection selection = {});

/// The amounts that a request takes of a machine: a part of a device is no `gpu`, and each device
/// of several gives gpu_mem and gpu_slots. A machine that covers them may still refuse, if no
/// single device has enough.
Resources charged(const Resources& wanted);

/// Whether the selection accepts the device, or a part of it, for its size.
bool accepts(const DeviceSelection& selection, const DeviceShare& device);

/// The shares of `free` devices that satisfy the need, by index; empty: it does not fit. A part
/// comes from the device with the least left (best fit), memory first. Of whole devices limited by
/// size the smallest acceptable ones come first, then those that the policy takes. `links` may be
/// null: all devices are joined alike, whatever the policy.
std::vector<DeviceShare> choose_devices(std::span<const DeviceShare> free, const DeviceNeed& need,
                                        DeviceLinks* links);

/// Returns the short resource of a need that does not fit now, and the reason: "gpu_mem",
/// "requested 20 GiB of one device, the freest has 16 GiB". `free` is what is free of each device.
std::pair<Known, std::string> shortage(std::span<const DeviceShare> free, const DeviceNeed& need);
/// Returns why a need does not fit the empty machine: "9 GPUs requested; this machine has 8".
/// `machine` is the machine's name in the sentence, such as "this machine".
std::string shortage_of_total(std::span<const DeviceShare> devices, const DeviceNeed& need,
                              std::string_view machine);

/// The environment that makes exactly these devices visible to a task: CUDA_VISIBLE_DEVICES and
/// NVIDIA_VISIBLE_DEVICES, or ROCR_VISIBLE_DEVICES, by UUID (by index for an AMD device without
/// one). Without devices none are visible.
std::vector<std::pair<std::string, std::string>> visibility(std::span<const DeviceShare> devices);

}  // namespace berth::machine
