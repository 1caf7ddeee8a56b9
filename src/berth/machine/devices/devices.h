// Discovery of this machine's GPUs: the devices and what joins them (NVML for NVIDIA, the kernel's
// KFD for AMD), their health, and who else computes on them. The variable BERTH_TOPOLOGY (a name of
// the catalogue, or a topology file) replaces the hardware.
//
// The functions read on every call and keep nothing, so a call may take as long as the drivers do
// (seconds for NVIDIA): none belongs on the path of a placement. Threads: as the Env, one call at a
// time. What a driver does not report is in the topology's `notes` and makes it `partial`. Errors:
// invalid and not_found for BERTH_TOPOLOGY; invalid for devices that are inconsistent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/devices/nvml.h"
#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::machine {

struct DeviceOptions {
  std::string root;  // prefix of /proc and /sys: "" live, a fixture's folder in tests
  std::string nvml_library = "libnvidia-ml.so.1";
  Nvml* nvml = nullptr;  // replaces the library; must outlive the call
};

/// Discovers the devices, by index: NVIDIA's in the driver's order, with MIG instances in place of
/// their GPU, then AMD's; at most kMostDevices. The result passes topology::check().
///
/// A pair has the NVLinks from one to the other, and as many switched ones as the lesser number of
/// links that the two have to switches.
Result<topology::Topology> discover_devices(os::Env& env, const DeviceOptions& options);

/// A machine of the catalogue by its name, or the topology file of that path. Errors: not_found,
/// invalid.
Result<topology::Topology> named_topology(os::Env& env, const std::string& name);

struct DeviceHealth {
  topology::Health health = topology::Health::healthy;
  std::string because;  // "3 uncorrected ECC errors"; empty: healthy
  bool operator==(const DeviceHealth&) const = default;
};

/// A process that computes on a device.
struct DeviceUse {
  std::size_t device = 0;   // index into Topology::devices
  pid_t pid = 0;            // as the host counts it
  std::int64_t memory = 0;  // bytes of the device; 0: unknown
  bool operator==(const DeviceUse&) const = default;
};

struct DeviceWatch {
  std::vector<DeviceHealth> health;  // in the order of the devices of the earlier reading
  std::vector<DeviceUse> uses;       // by processes that are not Berth's
  std::vector<std::string> notes;    // what could not be determined
};

/// The present health of the devices of `earlier` (by UUID). Unhealthy: uncorrected ECC errors,
/// memory that needs a reset, fewer links than in `earlier`. Lost: off the bus, or no longer
/// listed, as when the driver is unloaded. A device can recover, so the caller compares with the
/// first reading always.
Result<DeviceWatch> refresh_health(os::Env& env, const DeviceOptions& options,
                                   const topology::Topology& earlier,
                                   const std::function<bool(pid_t)>& is_ours);

}  // namespace berth::machine
