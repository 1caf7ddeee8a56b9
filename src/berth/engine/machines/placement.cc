#include "berth/engine/machines/placement.h"

#include <algorithm>
#include <bit>

#include "berth/base/ranges.h"
#include "berth/base/text.h"
#include "berth/machine/devices/device_health.h"
#include "berth/machine/ledger/ledger.h"
#include "berth/placement/placement.h"

namespace berth::engine {
namespace {

using placement::DeviceSet;

Status check_devices(const topology::Topology& topology) {
  if (topology.devices.empty())
    return fail(ErrorKind::not_found,
                "no GPU found on this machine; try --topology dgx1-v100, or a file with what "
                "nvidia-smi topo -m prints");
  return topology::check(topology);
}

/// The devices of a machine, and why some of them are not available.
struct Inventory {
  topology::Topology topology;
  DeviceSet unhealthy = 0;
  DeviceSet hidden = 0;                // by the environment of this process
  std::optional<DeviceSet> held = {};  // by runs and other processes; none: this was not asked
  DeviceSet usable() const { return ~(unhealthy | hidden | held.value_or(0)); }
};

template <class Has>
DeviceSet devices_that(const topology::Topology& topology, const Has& has) {
  DeviceSet set = 0;
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if (has(topology.devices[i])) set |= DeviceSet{1} << i;
  return set;
}

bool is_among(std::span<const machine::DeviceShare> shares, const topology::Device& device) {
  return std::ranges::find(shares, device.uuid, &machine::DeviceShare::uuid) != shares.end();
}

/// The devices of which runs, or processes other than Berth's, hold any part.
Result<DeviceSet> held_ones(os::Env& env, const machine::Devices& devices) {
  BERTH_ASSIGN(auto ledger, machine::Ledger::open(env, machine::Ledger::default_directory(env)));
  BERTH_ASSIGN(const auto entries, ledger.entries());
  const auto host = machine::host_of({}, &devices);
  machine::Machine machine(host.total, host.links);
  const auto held = machine::occupy_all(machine, host, entries);
  return devices_that(devices.topology, [&](const topology::Device& device) {
    return std::ranges::any_of(machine.free_devices(), [&](const machine::DeviceShare& free) {
      return free.uuid == device.uuid && !free.whole;
    });
  });
}

Result<Inventory> inventory_of(os::Env& env, const PlacementRequest& request) {
  const auto is_unhealthy = [](const topology::Device& device) {
    return device.health != topology::Health::healthy;
  };
  Inventory inventory;
  if (!request.topology.empty()) {
    BERTH_ASSIGN(inventory.topology, read_topology(env, request.topology));
    inventory.unhealthy = devices_that(inventory.topology, is_unhealthy);
    return inventory;
  }
  BERTH_ASSIGN(const auto devices,
               machine::read_devices(env, {}, machine::Ledger::default_directory(env)));
  BERTH_TRY(check_devices(devices.topology));
  inventory.topology = devices.topology;
  inventory.unhealthy = devices_that(inventory.topology, is_unhealthy);
  inventory.hidden = devices_that(inventory.topology, [&](const topology::Device& device) {
    return !is_among(devices.shares, device);
  });
  if (!request.all && !request.available) {
    BERTH_ASSIGN(inventory.held, held_ones(env, devices));
  }
  return inventory;
}

DeviceSet all_of(const topology::Topology& topology) {
  return ~DeviceSet{0} >> (placement::kMostDevices - topology.devices.size());
}

std::vector<int> indices(const topology::Topology& topology, DeviceSet set) {
  std::vector<int> result;
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if ((set >> i & 1U) != 0) result.push_back(topology.devices[i].index);
  return result;
}

/// The numbers of devices, such as "0,2-5".
std::string names(const topology::Topology& topology, DeviceSet set) {
  return set == 0 ? "none" : ranges_text(indices(topology, set));
}

/// The set of the one device with that UUID or index; empty where there is none.
DeviceSet find_device(const topology::Topology& topology, std::string_view name) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const auto& device = topology.devices[i];
    if (device.uuid == name || fmt::format("{}", device.index) == name) return DeviceSet{1} << i;
  }
  return 0;
}

/// The devices that a text such as "0,2-5" or a list of UUIDs names.
Result<DeviceSet> device_list(const topology::Topology& topology, const std::string& text) {
  DeviceSet set = 0;
  BERTH_ASSIGN(const auto called, machine::device_names(text, [&](std::string_view name) {
                 return find_device(topology, name) != 0;
               }));
  for (const auto& name : called) {
    const DeviceSet found = find_device(topology, name);
    if (found == 0)
      return fail(ErrorKind::invalid, "no device '{}' in {}, which has {}, or their UUIDs",
                  clip(name), topology.name, names(topology, ~DeviceSet{0}));
    set |= found;
  }
  return set;
}

/// What `named` makes of the text; the default where the text is empty.
template <class Kind>
Result<Kind> kind_of(std::string_view flag, const std::string& text,
                     Result<Kind> (*named)(std::string_view)) {
  if (text.empty()) return Kind{};
  const auto kind = named(text);
  if (!kind) return fail(ErrorKind::usage, "{}: {}", flag, kind.error().message);
  return kind;
}

/// Why what is not available is not.
std::string others_text(const Inventory& inventory) {
  const auto name = [&](DeviceSet set) {
    return names(inventory.topology, set & all_of(inventory.topology));
  };
  std::string text;
  if (inventory.held.value_or(0) != 0)
    text +=
        fmt::format("; in use: {} (see berth machine; --all includes them)", name(*inventory.held));
  if (inventory.hidden != 0)
    text +=
        fmt::format("; hidden from this process by its environment: {}", name(inventory.hidden));
  if (inventory.unhealthy != 0) text += "; the others are not healthy, see berth topo";
  return text;
}

/// Refuses what placement would refuse too, with the device numbers of the machine.
Status check(const Inventory& inventory, const placement::Question& question,
             bool is_available_given) {
  const auto& [available, required, count, objective] = question;
  const auto name = [&](DeviceSet set) { return names(inventory.topology, set); };
  const std::string others = is_available_given ? "" : others_text(inventory);
  if (const DeviceSet missing = required & ~available; missing != 0)
    return fail((missing & ~inventory.held.value_or(0)) == 0 ? ErrorKind::busy : ErrorKind::invalid,
                "--require: {} not among the available: {}{}", name(missing), name(available),
                others);
  if (std::popcount(required) > count)
    return fail(ErrorKind::invalid, "--require: {} are more than {}", name(required), count);
  if (count <= std::popcount(available)) return {};
  const auto have = static_cast<int>(inventory.topology.devices.size());
  if (count > have)
    return fail(ErrorKind::impossible, "{} devices requested, {} has {}", count,
                inventory.topology.name, have);
  return fail(ErrorKind::busy, "{} devices requested, available: {}{}", count, name(available),
              others);
}

Result<placement::Question> question_of(const Inventory& inventory,
                                        const PlacementRequest& request) {
  const topology::Topology& topology = inventory.topology;
  placement::Question question;
  const auto count = parse_integer(request.count);
  if (!count || *count < 1 || *count > placement::kMostDevices)
    return fail(ErrorKind::usage, "expected how many devices, 1 to {}, got '{}'",
                placement::kMostDevices, clip(request.count));
  question.count = static_cast<int>(*count);
  question.available = inventory.usable() & all_of(topology);
  if (request.available) {
    BERTH_ASSIGN(question.available, device_list(topology, *request.available));
  }
  BERTH_ASSIGN(question.required, device_list(topology, request.require));
  BERTH_ASSIGN(question.objective,
               kind_of("--objective", request.objective, placement::objective_named));
  BERTH_TRY(check(inventory, question, request.available.has_value()));
  return question;
}

}  // namespace

Result<topology::Topology> read_topology(os::Env& env, const std::string& name) {
  BERTH_ASSIGN(auto topology, name.empty() ? machine::discover_devices(env, {})
                                           : machine::named_topology(env, name));
  BERTH_TRY(check_devices(topology));
  return topology;
}

Result<PlacementReport> place_devices(os::Env& env, const PlacementRequest& request) {
  BERTH_ASSIGN(const auto inventory, inventory_of(env, request));
  const topology::Topology& topology = inventory.topology;
  BERTH_ASSIGN(const auto question, question_of(inventory, request));
  BERTH_ASSIGN(const auto policy, kind_of("--policy", request.policy, placement::policy_named));
  BERTH_ASSIGN(auto chooser, placement::Chooser::make(topology));
  BERTH_ASSIGN(const auto answer, chooser.choose(policy, question));
  PlacementReport report;
  report.devices = indices(topology, answer.devices);
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if ((answer.devices >> i & 1U) != 0) report.uuids.push_back(topology.devices[i].uuid);
  if (inventory.held) report.held = indices(topology, *inventory.held);
  report.policy = placement::name(policy);
  report.objective = placement::name(question.objective);
  report.score = answer.value.first;
  report.partition_score = answer.partition_score;
  report.exact = answer.exact;
  report.bound = answer.bound;
  if (const auto next = chooser.best_alternative(question, answer))
    report.alternative = {indices(topology, next->devices), next->value.first};
  const DeviceSet left = question.available & ~answer.devices;
  for (const int count : {2, 4, 8}) {
    auto& [size, score] = report.remaining.emplace_back(count, std::nullopt);
    if (const auto best = chooser.best(left, size, question.objective)) score = best->value.first;
  }
  return report;
}

}  // namespace berth::engine
