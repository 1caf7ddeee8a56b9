// The GPUs of this machine: which there are and what joins them (NVML for NVIDIA's, the kernel's
// KFD for AMD's), whether they are well, and who else computes on them. The variable BERTH_TOPOLOGY
// (a name of the catalogue, or a topology file) stands in for the hardware, whatever there is.
//
// Reads on every call and keeps nothing, so a call may take as long as the drivers do (NVIDIA's up
// to seconds): none belongs on the path of a placement. Threads: as the Env, one call at a time.
// Failure: what is absent is no device; what a driver does not tell is told in the topology's
// `notes` and makes it `partial`; errors are those of BERTH_TOPOLOGY (invalid, not_found) and of a
// driver whose devices make no sense together (invalid).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/machine/nvml.h"
#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::machine {

struct DeviceOptions {
  std::string root;  // prefix of /proc and /sys: "" live, a fixture's folder in tests
  std::string nvml_library = "libnvidia-ml.so.1";
  Nvml* nvml = nullptr;  // stands in for the library; outlives the call
};

/// By index: NVIDIA's as the driver counts them, MIG instances in place of their card, then AMD's.
/// At most kMostDevices. What it gives passes topology::check().
///
/// A pair has the NVLinks from one to the other, and as many through switches as the lesser of the
/// two has to switches.
Result<topology::Topology> discover_devices(os::Env& env, const DeviceOptions& options);

/// A machine of the catalogue by its name, or the topology file of that path. not_found, invalid.
Result<topology::Topology> named_topology(os::Env& env, const std::string& name);

struct DeviceHealth {
  topology::Health health = topology::Health::well;
  std::string because;  // "3 uncorrected ECC errors"; empty: well
  bool operator==(const DeviceHealth&) const = default;
};

/// A process that computes on a device.
struct DeviceUse {
  std::size_t device = 0;   // place in Topology::devices
  pid_t pid = 0;            // as the host counts it
  std::int64_t memory = 0;  // bytes of the device; 0: not told
  bool operator==(const DeviceUse&) const = default;
};

struct DeviceWatch {
  std::vector<DeviceHealth> health;  // of each device of the earlier reading, by place
  std::vector<DeviceUse> uses;       // of processes that are not ours
  std::vector<std::string> notes;    // what could not be told
};

/// How the devices of `earlier` (by UUID) are now. Unwell: uncorrected ECC errors, memory that
/// needs a reset, fewer links of its own than `earlier` shows. Gone: off the bus, or not listed any
/// more, as when its driver is unloaded. What is well again is well: keep the first reading to
/// compare.
Result<DeviceWatch> refresh_health(os::Env& env, const DeviceOptions& options,
                                   const topology::Topology& earlier,
                                   const std::function<bool(pid_t)>& is_ours);

}  // namespace berth::machine
