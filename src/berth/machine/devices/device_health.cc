#include "berth/machine/devices/device_health.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "berth/base/json.h"
#include "berth/base/json_error.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/machine/enclosing_task.h"
#include "berth/machine/ledger/ledger.h"

namespace berth::machine {
namespace {

constexpr std::size_t kLargestProcessFile = 1 << 16;

/// Tells processes of allocs from others by their ancestors. Those that a container hides from us
/// are taken for ours while any alloc has devices: counted twice they would keep devices idle.
class Ancestry {
 public:
  Ancestry(os::Env& env, const std::string& ledger_directory) : env_(env) {
    auto ledger = Ledger::open(env, ledger_directory);
    if (!ledger) return;
    for (const auto& entry : ledger->entries().value_or(std::vector<LedgerEntry>())) {
      if (entry.waiting) continue;
      holders_.insert(entry.holder.pid);
      any_devices_ = any_devices_ || !entry.block.devices.empty();
    }
  }

  bool ours(pid_t pid) {
    constexpr int kMostAncestors = 64;
    if (!env_.status(fmt::format("/proc/{}", pid))) return any_devices_;
    for (int depth = 0; depth < kMostAncestors && pid > 1; ++depth, pid = parent(pid))
      if (holders_.contains(pid)) return true;
    return false;
  }

 private:
  /// Field 4 of stat, behind the name in its parentheses; 0: not known.
  pid_t parent(pid_t pid) {
    const auto text = env_.read_file(fmt::format("/proc/{}/stat", pid), kLargestProcessFile);
    if (!text) return 0;
    const auto fields = words(std::string_view(*text).substr(text->rfind(')') + 1));
    return fields.size() > 1 ? static_cast<pid_t>(parse_integer(fields[1]).value_or(0)) : 0;
  }

  os::Env& env_;
  std::set<pid_t> holders_;
  bool any_devices_ = false;
};

std::string program_of(os::Env& env, pid_t pid) {
  const auto name = env.read_file(fmt::format("/proc/{}/comm", pid), kLargestProcessFile);
  return name ? valid_utf8(trim(*name)) : "";
}

std::vector<CoreShare> cores_of(const Capacity& capacity) {
  std::vector<CoreShare> cores;
  for (const auto& node : capacity.nodes)
    for (const int core : node.cores) cores.push_back({core, node.node, 1000});
  std::ranges::sort(cores, {}, &CoreShare::core);
  return cores;
}

/// Within a container NVIDIA_VISIBLE_DEVICES tells what its runtime was to bring in, counted as the
/// host counts; the hardware that is seen is what came of it.
VisibleDevices visible_devices(os::Env& env, const DeviceOptions& options) {
  const auto described = env.variable("BERTH_TOPOLOGY");
  const bool is_hardware = !described || described->empty();
  const bool in_container = std::ranges::any_of(
      std::array{"/.dockerenv", "/run/.containerenv", "/run/systemd/container"},
      [&](const char* file) { return env.status(options.root + file).has_value(); });
  const bool is_applied = is_hardware && (in_container || env.variable("container") ||
                                          env.variable("KUBERNETES_SERVICE_HOST"));
  return {.cuda = env.variable("CUDA_VISIBLE_DEVICES"),
          .nvidia = is_applied ? std::nullopt : env.variable("NVIDIA_VISIBLE_DEVICES"),
          .rocr = env.variable("ROCR_VISIBLE_DEVICES")};
}

}  // namespace

Result<DeviceHealthUpdate> read_health_update(os::Env& env, const DeviceOptions& options,
                                              const topology::Topology& first,
                                              const std::string& ledger_directory) {
  Ancestry ancestry(env, ledger_directory);
  BERTH_ASSIGN(const auto seen,
               refresh_health(env, options, first, [&](pid_t pid) { return ancestry.ours(pid); }));
  DeviceHealthUpdate update;
  for (std::size_t i = 0; i < seen.health.size(); ++i)
    if (seen.health[i].health != topology::Health::healthy)
      update.out_of_service.emplace_back(first.devices[i].uuid, seen.health[i].because);
  for (const DeviceUse& use : seen.uses)
    update.foreign.push_back(
        {first.devices[use.device].uuid, use.pid, program_of(env, use.pid), use.memory});
  return update;
}

Result<Devices> read_devices(os::Env& env, const DeviceOptions& options,
                             const std::string& ledger_directory) {
  Devices devices;
  BERTH_ASSIGN(devices.topology, discover_devices(env, options));
  if (devices.topology.devices.empty()) return devices;
  devices.shares = shares_of(devices.topology);
  const auto all =
      std::exchange(devices.shares, visible_ones(devices.shares, visible_devices(env, options)));
  for (const DeviceShare& share : all)
    if (std::ranges::find(devices.shares, share) == devices.shares.end())
      devices.hidden.push_back(share.index);
  if (const auto task = enclosing_task(env)) narrow(devices.shares, task->block);
  BERTH_ASSIGN(devices.links, DeviceLinks::make(devices.topology));
  BERTH_ASSIGN(devices.health,
               read_health_update(env, options, devices.topology, ledger_directory));
  return devices;
}

Host host_of(const Capacity& capacity, const Devices* devices) {
  Host host{.total = {capacity.total, cores_of(capacity)}};
  if (devices == nullptr) return host;
  const DeviceHealthUpdate& health = devices->health;
  host.links = devices->links;
  for (DeviceShare share : devices->shares) {
    const bool out = std::ranges::any_of(
        health.out_of_service, [&](const auto& device) { return device.first == share.uuid; });
    if (out) continue;
    const auto& known = devices->topology.devices;
    const auto device = std::ranges::find(known, share.uuid, &topology::Device::uuid);
    share.size = topology::slots_of(device->model, capacity.gpu_slots);
    share.slots = share.size;
    host.total.devices.push_back(std::move(share));
  }
  set_device_amounts(host.total.devices, host.total.resources);
  for (const ForeignUse& use : health.foreign) {
    Block block;
    block.devices = {{.uuid = use.uuid, .memory = use.memory, .whole = false}};
    host.foreign.emplace_back(
        fmt::format("process {}{}", use.pid, use.program.empty() ? "" : " (" + use.program + ")"),
        std::move(block));
  }
  return host;
}

std::string name_of(const Devices& devices, std::string_view uuid) {
  const auto& all = devices.topology.devices;
  const auto found = std::ranges::find(all, uuid, &topology::Device::uuid);
  return found != all.end() ? fmt::format("GPU{}", found->index) : std::string(uuid);
}

std::string unusable_text(const Devices& devices) {
  std::vector<std::string> texts;
  for (const auto& [uuid, because] : devices.health.out_of_service)
    texts.push_back(fmt::format("{} ({})", name_of(devices, uuid), because));
  std::string text = texts.empty() ? "" : "; out of service: " + join(texts, ", ");
  if (!devices.hidden.empty())
    text += fmt::format("; hidden by CUDA_VISIBLE_DEVICES or its like: GPU{}",
                        fmt::join(devices.hidden, ", GPU"));
  return text;
}

std::string to_json(const DeviceHealthUpdate& update) {
  Json out = Json::array();
  for (const auto& [uuid, why] : update.out_of_service)
    out.push_back(Json{{"uuid", uuid}, {"because", why}});
  Json foreign = Json::array();
  for (const ForeignUse& use : update.foreign)
    foreign.push_back(Json{
        {"uuid", use.uuid}, {"pid", use.pid}, {"program", use.program}, {"memory", use.memory}});
  return dump(Json{{"out_of_service", out}, {"foreign", foreign}});
}

Result<DeviceHealthUpdate> health_update_of_json(std::string_view line) {
  BERTH_ASSIGN(const Json json, parse_json(line));
  try {
    DeviceHealthUpdate update;
    for (const Json& device : json.at("out_of_service"))
      update.out_of_service.emplace_back(device.at("uuid"), device.at("because"));
    for (const Json& use : json.at("foreign"))
      update.foreign.push_back(
          {use.at("uuid"), use.at("pid"), use.at("program"), use.at("memory")});
    return update;
  } catch (const Json::exception& error) {
    return fail(ErrorKind::corrupt, "a health update of devices cannot be read: {}",
                without_library_tag(error.what()));
  }
}

}  // namespace berth::machine
