// PCIe levels and NUMA nodes that the vendors do not tell come from sysfs and not from hwloc:
// through the Env faults can be injected and a machine is a few lines of a fixture, and hwloc's own
// discovery would cost each machine without GPUs more than all of this.
#include "berth/machine/devices/devices.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "berth/base/text.h"
#include "berth/machine/devices/devices_pci.h"
#include "berth/machine/devices/devices_reading.h"

namespace berth::machine {
namespace {

using topology::Health;
using topology::Pcie;
using topology::Topology;

constexpr const char* kVariable = "BERTH_TOPOLOGY";

Result<std::optional<Topology>> stand_in(os::Env& env) {
  const auto named = env.variable(kVariable);
  if (!named || named->empty()) return std::nullopt;
  auto topology = named_topology(env, *named);
  if (!topology) return std::unexpected(within(kVariable, std::move(topology).error()));
  return std::optional(*std::move(topology));
}

/// A machine without NVIDIA's driver has no use for its library, and nobody misses it there.
void read_nvidia(os::Env& env, const DeviceOptions& options, Reading& reading) {
  if (options.nvml != nullptr) return read_nvml(*options.nvml, reading);
  const auto nvml = open_nvml(options.nvml_library);
  if (nvml) return read_nvml(**nvml, reading);
  const bool has_driver = env.status(options.root + "/proc/driver/nvidia").has_value();
  if (has_driver || nvml.error().kind != ErrorKind::not_found)
    reading.add_gap("NVIDIA devices are not reported: " + nvml.error().message);
}

/// No UUID twice (older kernels give the partitions of an AMD card one id), not too many devices.
void bound(Reading& reading) {
  std::set<std::string> uuids;
  for (DeviceReading& seen : reading.devices) {
    if (uuids.insert(seen.device.uuid).second) continue;
    reading.add_gap(fmt::format("GPU{}: its UUID {} is another's too", seen.device.index,
                                clip(seen.device.uuid)));
    seen.device.uuid = fmt::format("gpu-{}", seen.device.index);
    uuids.insert(seen.device.uuid);
  }
  if (reading.devices.size() <= topology::kMostDevices) return;
  reading.add_gap(fmt::format("{} devices, the first {} are taken", reading.devices.size(),
                              topology::kMostDevices));
  reading.devices.resize(topology::kMostDevices);
}

Reading read_all(os::Env& env, const DeviceOptions& options) {
  Reading reading;
  read_nvidia(env, options, reading);
  read_kfd(env, options.root, reading);
  bound(reading);
  return reading;
}

int direct(const DeviceReading& from, std::size_t to) {
  const auto at = from.direct.find(to);
  return at == from.direct.end() ? 0 : at->second;
}

/// The links of its own that `from` may have to `to`, whatever the other side still has.
int own_links(const Reading& reading, std::size_t from, std::size_t to) {
  return direct(reading.devices[from], to) + reading.devices[from].switched;
}

int fabric_links(const Reading& reading, std::size_t a, std::size_t b) {
  const DeviceReading& one = reading.devices[a];
  const DeviceReading& other = reading.devices[b];
  return std::min(direct(one, b), direct(other, a)) + std::min(one.switched, other.switched);
}

/// As the driver tells it, which is asked once for a pair.
Pcie told_level(const Reading& reading, std::size_t a, std::size_t b) {
  const auto& levels = reading.devices[std::min(a, b)].levels;
  const auto at = levels.find(std::max(a, b));
  return at == levels.end() ? Pcie::unknown : at->second;
}

topology::Link link_of(const Reading& reading, std::size_t a, std::size_t b,
                       const std::vector<PciPlace>& places) {
  const DeviceReading& one = reading.devices[a];
  const DeviceReading& other = reading.devices[b];
  topology::Link link;
  link.pcie = told_level(reading, a, b);
  if (link.pcie == Pcie::unknown) link.pcie = pcie_level(places[a], places[b]);
  link.fabric = fabric_links(reading, a, b);
  if (link.fabric > 0) {
    link.kind = one.fabric;
    link.generation = std::min(one.generation, other.generation);
  }
  return link;
}

void read_nics(os::Env& env, const std::string& root, const std::vector<PciPlace>& places,
               Topology& topology) {
  const std::string folder = root + "/sys/class/infiniband";
  for (const std::string& name : env.list(folder).value_or(std::vector<std::string>())) {
    if (topology.nics.size() == topology::kMostNics) return;
    const PciPlace at = pci_place(env, folder + "/" + name + "/device");
    if (at.path.empty()) continue;  // made of software
    topology::Nic& nic = topology.nics.emplace_back(name, std::vector<Pcie>());
    for (const PciPlace& place : places) nic.devices.push_back(pcie_level(at, place));
  }
}

Topology topology_of(os::Env& env, const DeviceOptions& options, const Reading& reading) {
  Topology topology;
  topology.source = join(reading.sources, " and ");
  topology.partial = reading.partial;
  topology.notes = reading.notes;
  const std::size_t count = reading.devices.size();
  if (count == 0) return topology;
  topology.name = env.host_name();
  std::vector<PciPlace> places;
  for (const DeviceReading& seen : reading.devices) {
    topology::Device device = seen.device;
    places.push_back(pci_place(env, options.root + "/sys/bus/pci/devices/" + device.pci));
    if (device.numa < 0) device.numa = places.back().numa;
    if (device.cores.empty()) device.cores = places.back().cores;
    topology.devices.push_back(std::move(device));
  }
  topology.links.resize(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (a != b) topology.link(a, b) = link_of(reading, a, b, places);
  read_nics(env, options.root, places, topology);
  return topology;
}

/// The place of each device of `earlier` among those seen now; nullopt: it is not.
std::vector<std::optional<std::size_t>> places_now(const Topology& earlier,
                                                   const std::vector<topology::Device>& now) {
  std::vector<std::optional<std::size_t>> places;
  for (const topology::Device& device : earlier.devices) {
    const auto at = std::ranges::find(now, device.uuid, &topology::Device::uuid);
    places.push_back(at == now.end() ? std::nullopt : std::optional<std::size_t>(at - now.begin()));
  }
  return places;
}

std::vector<topology::Device> devices_of(const Reading& reading) {
  std::vector<topology::Device> devices;
  for (const DeviceReading& seen : reading.devices) devices.push_back(seen.device);
  return devices;
}

std::vector<DeviceHealth> health_of(const std::vector<topology::Device>& now,
                                    const std::vector<std::optional<std::size_t>>& places,
                                    const std::vector<std::string>& notes) {
  std::vector<DeviceHealth> result;
  for (const auto place : places)
    if (place)
      result.push_back({now[*place].health, now[*place].unhealthy_reason});
    else
      result.push_back(
          {Health::lost, "its driver does not list it any more" +
                             (now.empty() && !notes.empty() ? ": " + notes.front() : "")});
  return result;
}

/// Links are counted at each card's own end, so that of a pair only the one that lost some is
/// blamed; where the other one is gone its links went with it.
void find_lost_links(const Topology& earlier, const Reading& now,
                     const std::vector<std::optional<std::size_t>>& places,
                     std::vector<DeviceHealth>& health) {
  for (std::size_t a = 0; a < places.size(); ++a)
    for (std::size_t b = 0; b < places.size() && health[a].health == Health::healthy; ++b) {
      if (a == b || !places[a] || !places[b] || health[b].health == Health::lost ||
          !now.devices[*places[a]].links_told)
        continue;
      const int had = earlier.link(a, b).fabric;
      const int has = own_links(now, *places[a], *places[b]);
      if (has < had)
        health[a] = {Health::unhealthy, fmt::format("{} of {} links to GPU{} are lost", had - has,
                                                    had, earlier.devices[b].index)};
    }
}

std::vector<DeviceUse> uses_of(const Reading& now,
                               const std::vector<std::optional<std::size_t>>& places,
                               const std::function<bool(pid_t)>& is_ours) {
  std::vector<DeviceUse> uses;
  for (std::size_t device = 0; device < places.size(); ++device) {
    if (!places[device]) continue;
    for (const DeviceProcess& process : now.devices[*places[device]].processes)
      if (!is_ours(process.pid)) uses.push_back({device, process.pid, process.memory});
  }
  return uses;
}

}  // namespace

Result<Topology> named_topology(os::Env& env, const std::string& name) {
  auto known = topology::known_machine(name);
  if (known) return known;
  const auto text = env.read_file(name, topology::kMostText);
  if (text) return topology::read(*text, name);
  // Without a slash or a dot it was meant for a name, and the catalogue's answer has the nearest
  // one.
  return std::unexpected(name.find_first_of("/.") == name.npos ? known.error() : text.error());
}

Result<Topology> discover_devices(os::Env& env, const DeviceOptions& options) {
  BERTH_ASSIGN(auto instead, stand_in(env));
  if (instead) return *std::move(instead);
  Topology topology = topology_of(env, options, read_all(env, options));
  BERTH_TRY(topology::check(topology));
  return topology;
}

Result<DeviceWatch> refresh_health(os::Env& env, const DeviceOptions& options,
                                   const Topology& earlier,
                                   const std::function<bool(pid_t)>& is_ours) {
  BERTH_ASSIGN(const auto instead, stand_in(env));
  DeviceWatch watch;
  if (instead) {
    const auto places = places_now(earlier, instead->devices);
    watch.health = health_of(instead->devices, places, instead->notes);
    return watch;
  }
  const Reading now = read_all(env, options);
  const auto devices = devices_of(now);
  const auto places = places_now(earlier, devices);
  watch.health = health_of(devices, places, now.notes);
  find_lost_links(earlier, now, places, watch.health);
  watch.uses = uses_of(now, places, is_ours);
  watch.notes = now.notes;
  return watch;
}

}  // namespace berth::machine
