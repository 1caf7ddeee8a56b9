// The position of a PCIe device, from sysfs. The functions read through the Env on every call; an
// error means "unknown". Threads: as the Env.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::machine {

inline constexpr std::size_t kLargestSysfsFile = 1 << 16;

/// "00000000:3B:00.0" -> "0000:3b:00.0", as sysfs names it.
std::string pci_address(std::string_view bus_id);

struct PciPlace {
  std::vector<std::string> path;  // host bridge, bridges, the device; empty: unknown
  int numa = -1;                  // -1: unknown, or a machine of one node
  std::vector<int> cores;         // the near CPU cores, ascending; empty: unknown
};

/// The position of a folder such as /sys/bus/pci/devices/ADDRESS, which is a link into
/// /sys/devices.
PciPlace pci_place(os::Env& env, const std::string& folder);

/// The level by the definitions of `nvidia-smi topo -m`; unknown if a position is.
topology::Pcie pcie_level(const PciPlace& one, const PciPlace& other);

}  // namespace berth::machine
