// The machine's devices as runs use them. They are read once; health updates then say which are out
// of service and which processes other than Berth's compute on them.
//
// Reading asks the drivers, which may take seconds: it is done once before anything is placed, and
// from then on by a separate process (health_watch.h). The types are plain values for any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/capacity.h"
#include "berth/machine/devices/devices.h"
#include "berth/machine/machine.h"

namespace berth::machine {

/// A process on a device that belongs to no alloc.
struct ForeignUse {
  std::string uuid;  // of the device
  pid_t pid = 0;
  std::string program;      // "python3"; "" if it cannot be seen
  std::int64_t memory = 0;  // bytes of the device; 0: unknown
  bool operator==(const ForeignUse&) const = default;
};

/// A health update: the state of all devices at one reading.
struct DeviceHealthUpdate {
  std::vector<std::pair<std::string, std::string>> out_of_service;  // UUID, reason
  std::vector<ForeignUse> foreign;
  bool operator==(const DeviceHealthUpdate&) const = default;
};

struct Devices {
  topology::Topology topology;         // as read first; later health is compared with it
  std::vector<DeviceShare> shares;     // of the devices that this process may use, healthy or not
  std::vector<int> hidden;             // indices of devices that the environment hides
  std::shared_ptr<DeviceLinks> links;  // null: no devices
  DeviceHealthUpdate health;
};

/// Reads the devices of the hardware or of BERTH_TOPOLOGY; CUDA_VISIBLE_DEVICES,
/// NVIDIA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES narrow either. Within a container
/// NVIDIA_VISIBLE_DEVICES does not narrow the hardware, as the container's runtime has applied it.
/// Processes of allocs in `ledger_directory` are not foreign. Errors: those of discover_devices().
Result<Devices> read_devices(os::Env& env, const DeviceOptions& options,
                             const std::string& ledger_directory);

/// Reads the present health of the devices of `first`.
Result<DeviceHealthUpdate> read_health_update(os::Env& env, const DeviceOptions& options,
                                              const topology::Topology& first,
                                              const std::string& ledger_directory);

/// The host of this capacity and these devices, without those that are out of service. `devices`
/// may be null: there are none.
Host host_of(const Capacity& capacity, const Devices* devices);

/// "GPU3", by the UUID of a device.
std::string name_of(const Devices& devices, std::string_view uuid);
/// "; out of service: GPU3 (3 uncorrected ECC errors)", "; hidden by CUDA_VISIBLE_DEVICES or its
/// like: GPU0, GPU1"; empty where Berth may use all.
std::string unusable_text(const Devices& devices);

/// JSON in one line without its end. Errors of reading: corrupt if to_json() did not write it.
std::string to_json(const DeviceHealthUpdate& update);
Result<DeviceHealthUpdate> health_update_of_json(std::string_view line);

}  // namespace berth::machine
