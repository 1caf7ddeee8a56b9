// Which devices a request gets: whole ones that belong together, or a part of the one that it fills
// best. A device is one GPU, or one MIG instance. Pure; the same question has the same answer.
//
// What `gpu`, `gpu_mem` and `gpu_slots` of a request mean: with gpu alone, that many whole devices.
// With gpu_mem or gpu_slots a part of one device, or of as many as gpu says, and each of them gives
// the whole of gpu_mem and gpu_slots. A device that somebody has a part of is never handed out
// whole.
//
// Threads: a DeviceLinks is used by one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/device_selection.h"
#include "berth/placement/placement.h"
#include "berth/resource/resources.h"
#include "berth/topology/topology.h"

namespace berth::machine {

/// A device as something to lend: all of it, what is free of it, or what is lent, as the holder of
/// the struct says.
struct DeviceShare {
  std::string uuid;
  int index = 0;            // as the machine counts them
  int node = -1;            // NUMA; -1: not told
  std::int64_t memory = 0;  // bytes
  int slots = 0;
  int size = 0;       // slots of the device when nothing of it is lent
  bool whole = true;  // nobody else has a part of it
  topology::Vendor vendor = topology::Vendor::nvidia;
  /// Bytes of the device when nothing of it is lent; 0 of a part that was lent elsewhere: its
  /// lender has looked.
  std::int64_t full_memory = 0;
  bool operator==(const DeviceShare&) const = default;
};

/// All of each device, well or not, by index. `slots`: patterns of model names, as slots_of()
/// takes.
std::vector<DeviceShare> shares_of(const topology::Topology& topology,
                                   const std::vector<std::pair<std::string, int>>& slots = {});

/// Lists of devices as their drivers read them: UUIDs, beginnings of UUIDs or indices, up to the
/// first that names no device; nullopt: all.
struct VisibleDevices {
  std::optional<std::string> cuda;    // CUDA_VISIBLE_DEVICES
  std::optional<std::string> nvidia;  // NVIDIA_VISIBLE_DEVICES: may be "all"; none, void: no device
  std::optional<std::string> rocr;    // ROCR_VISIBLE_DEVICES
};

/// Those of `shares` that all of these lists name. Each counts all devices of its vendor.
std::vector<DeviceShare> visible_ones(std::vector<DeviceShare> shares,
                                      const VisibleDevices& visible);

/// How a machine's devices are joined. Made once (of 16 devices: about 10 ms), shared by its
/// Machines.
class DeviceLinks {
 public:
  static Result<std::shared_ptr<DeviceLinks>> make(const topology::Topology& topology);
  /// The `count` of `devices` that the policy takes, those of `must` among them (bit i for
  /// devices[i]). not_found: a device is not known here; else why the policy takes none.
  /// size of must <= count <= devices.size() <= kMostDevices.
  Result<placement::DeviceSet> choose(std::span<const DeviceShare* const> devices,
                                      placement::DeviceSet must, int count,
                                      const DeviceSelection& selection);

 private:
  DeviceLinks(std::vector<std::string> uuids, placement::Chooser chooser)
      : uuids_(std::move(uuids)), chooser_(std::move(chooser)) {}
  std::vector<std::string> uuids_;
  placement::Chooser chooser_;
};

/// What a request asks of devices.
struct DeviceNeed {
  std::int64_t count = 0;
  std::int64_t memory = 0;  // bytes of each device
  std::int64_t slots = 0;   // of each device
  DeviceSelection selection = {};
  bool shared() const { return memory > 0 || slots > 0; }
};
DeviceNeed device_need(const Resources& wanted, DeviceSelection selection = {});

/// What a request takes of a machine's amounts: a part of a device is no `gpu`, and each device of
/// several gives its own gpu_mem and gpu_slots. A machine that covers it may still refuse, when no
/// one device has what is wanted of one.
Resources charged(const Resources& wanted);

/// Whether the selection accepts the device, or a part of it, for its size.
bool accepts(const DeviceSelection& selection, const DeviceShare& device);

/// The shares that the need gets of what is `free`, by index; empty: it does not fit. A part comes
/// of the device that it leaves the least of, memory first. Of whole ones that may be only of some
/// sizes the smallest come first, then those that the policy takes. `links` may be null: all alike,
/// whatever the policy.
std::vector<DeviceShare> choose_devices(std::span<const DeviceShare> free, const DeviceNeed& need,
                                        DeviceLinks* links);

/// The resource by whose name a need that does not fit is refused, and why: "gpu_mem", "wanted
/// 40.0 GiB of one device, the largest has 32.0 GiB". `total`: whether `devices` are those of the
/// empty machine, else what is free of them.
std::pair<Known, std::string> shortage(std::span<const DeviceShare> devices, const DeviceNeed& need,
                                       bool total);

/// What makes a task see its devices and no others: CUDA_VISIBLE_DEVICES and
/// NVIDIA_VISIBLE_DEVICES, or ROCR_VISIBLE_DEVICES, by UUID (of an AMD device that has none, by
/// index). Without devices: none are seen.
std::vector<std::pair<std::string, std::string>> visibility(std::span<const DeviceShare> devices);

}  // namespace berth::machine
