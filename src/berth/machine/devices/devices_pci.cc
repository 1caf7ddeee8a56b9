#include "berth/machine/devices/devices_pci.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/topology/notation.h"

namespace berth::machine {
namespace {

using topology::Pcie;

constexpr std::string_view kDevices = "/devices/";  // "/sys/devices/pci0000:00/0000:00:01.0/…"
constexpr std::string_view kHostBridge = "pci";

/// The bridges within an AMD card are its own, no switch of the machine's: they are left out.
bool is_within_card(os::Env& env, const std::string& bridge) {
  constexpr std::string_view kAmdGraphics = "0x1002";
  const auto vendor = env.read_file(bridge + "/vendor", kLargestSysfsFile);
  return vendor && trim(*vendor) == kAmdGraphics;
}

std::vector<std::string> path_of(os::Env& env, const std::string& folder) {
  const auto real = env.real_path(folder);
  if (!real) return {};
  const auto devices = real->find(kDevices);
  if (devices == std::string::npos) return {};
  const auto host = devices + kDevices.size();
  const auto parts = split(std::string_view(*real).substr(host), '/');
  if (!parts.front().starts_with(kHostBridge)) return {};
  std::vector<std::string> path;
  std::string so_far = real->substr(0, host - 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    so_far += "/" + std::string(parts[i]);
    const bool bridge = i > 0 && i + 1 < parts.size();
    if (!bridge || !is_within_card(env, so_far)) path.emplace_back(parts[i]);
  }
  return path;
}

}  // namespace

std::string pci_address(std::string_view bus_id) {
  constexpr std::string_view kNoDomain = "0000";
  const std::string address = lower(bus_id);
  return address.find(':') == 8 && address.starts_with(kNoDomain) ? address.substr(4) : address;
}

PciPlace pci_place(os::Env& env, const std::string& folder) {
  PciPlace place{path_of(env, folder), -1, {}};
  if (const auto text = env.read_file(folder + "/numa_node", kLargestSysfsFile))
    if (const auto node = parse_integer(trim(*text)); node && *node >= 0 && *node < (1 << 16))
      place.numa = static_cast<int>(*node);
  if (const auto text = env.read_file(folder + "/local_cpulist", kLargestSysfsFile))
    place.cores = topology::cores_of(trim(*text)).value_or(std::vector<int>());
  return place;
}

topology::Pcie pcie_level(const PciPlace& one, const PciPlace& other) {
  if (one.path.empty() || other.path.empty()) return Pcie::unknown;
  const auto [at_one, at_other] = std::ranges::mismatch(one.path, other.path);
  const auto shared = at_one - one.path.begin();
  if (shared == 0) return one.numa == other.numa ? Pcie::node : Pcie::sys;
  if (shared == 1) return Pcie::phb;
  // Behind what they share, each has at most its port of one switch in front.
  constexpr std::ptrdiff_t kPortAndDevice = 2;
  const bool one_switch =
      one.path.end() - at_one <= kPortAndDevice && other.path.end() - at_other <= kPortAndDevice;
  return one_switch ? Pcie::pix : Pcie::pxb;
}

}  // namespace berth::machine
