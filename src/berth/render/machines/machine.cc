#include "berth/render/machines/machine.h"

#include <algorithm>

#include "berth/base/json_writer.h"
#include "berth/base/ranges.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::render {
namespace {

std::string devices_text(const engine::MachineReport& report, const View& view) {
  Table table({"GPU",
               {"model", Column::kCut},
               "memory",
               "free",
               {"slots", 1},
               {"free", 2},
               {"numa", 3},
               {"UUID", 4},
               {"", Column::kCut}});
  for (const auto& share : report.devices.shares) {
    const auto& known = report.devices.topology.devices;
    const auto device = std::ranges::find(known, share.uuid, &topology::Device::uuid);
    const auto at =
        std::ranges::find(report.total_devices, share.uuid, &machine::DeviceShare::uuid);
    const bool well = at != report.total_devices.end();
    std::string state;
    for (const auto& [uuid, because] : report.devices.health.out_of_service)
      if (uuid == share.uuid) state = "out of service: " + because;
    for (const auto& use : report.devices.health.foreign)
      if (use.uuid == share.uuid)
        state += fmt::format("{}process {} ({}) has {}", state.empty() ? "" : ", ", use.pid,
                             use.program, format_bytes(use.memory));
    const auto free =
        well ? report.free_devices[static_cast<std::size_t>(at - report.total_devices.begin())]
             : machine::DeviceShare{};
    table.add({fmt::format("{}", share.index), device->model, format_bytes(share.memory),
               format_bytes(free.memory), fmt::format("{}", well ? at->slots : share.slots),
               fmt::format("{}", free.slots), share.node < 0 ? "?" : fmt::format("{}", share.node),
               share.uuid, state});
  }
  return table.empty() ? "" : "\n" + to_text(table, view);
}

constexpr std::size_t kBarWidth = 30;

std::string utilization_bar(std::int64_t held, std::int64_t total) {
  const double part = total > 0 ? static_cast<double>(held) / static_cast<double>(total) : 0;
  const auto full = static_cast<std::size_t>(std::min(1.0, part) * kBarWidth + 0.5);
  return std::string(full, '#') + std::string(kBarWidth - full, '.');
}

JsonWriter& add_amounts(JsonWriter& json, std::string_view name, const Resources& resources) {
  return json.key(name).raw(to_json(resources));
}

/// The amounts of all resources in `total`, also where they are 0.
void add_all_amounts(JsonWriter& json, std::string_view name, const Resources& resources,
                     const Resources& total) {
  json.key(name).object();
  total.each([&](std::string_view resource, std::int64_t) {
    const std::int64_t amount = resources.get(resource);
    json.key(resource).raw(measure(resource) == Measure::milli ? format_milli(amount)
                                                               : fmt::format("{}", amount));
  });
  json.end();
}

void add_share(JsonWriter& json, std::string_view name,
               const std::vector<machine::DeviceShare>& shares, const std::string& uuid) {
  json.key(name);
  const auto found = std::ranges::find(shares, uuid, &machine::DeviceShare::uuid);
  if (found == shares.end())
    json.raw("null");
  else
    json.object()
        .add("gpu", found->whole ? 1 : 0)
        .add("gpu_mem", found->memory)
        .add("gpu_slots", found->slots)
        .end();
}

/// All devices that this process may use, also those out of service.
void add_devices(JsonWriter& json, const engine::MachineReport& report) {
  const auto& health = report.devices.health;
  json.key("devices").array();
  for (const auto& share : report.devices.shares) {
    const auto device =
        std::ranges::find(report.devices.topology.devices, share.uuid, &topology::Device::uuid);
    const auto out = std::ranges::find(health.out_of_service, share.uuid,
                                       &std::pair<std::string, std::string>::first);
    const bool is_in_service = out == health.out_of_service.end();
    json.object().add("index", share.index).add("uuid", share.uuid).add("model", device->model);
    json.add("pci", device->pci).add("numa", share.node).add("mig_parent", device->mig_parent);
    json.add("in_service", is_in_service).add("because", is_in_service ? "" : out->second);
    add_share(json, "total", report.total_devices, share.uuid);
    add_share(json, "free", report.free_devices, share.uuid);
    json.key("foreign").array();
    for (const auto& use : health.foreign)
      if (use.uuid == share.uuid)
        json.object()
            .add("pid", use.pid)
            .add("program", use.program)
            .add("memory", use.memory)
            .end();
    json.end().end();
  }
  json.end();
}

/// The entries that wait, or those that use a part of the machine.
void add_entries(JsonWriter& json, const engine::MachineReport& report, bool waiting) {
  json.key(waiting ? "waiting" : "holders").array();
  auto start = report.starts.begin();
  for (const auto& entry : report.entries) {
    if (entry.waiting != waiting) continue;
    json.object().add("label", entry.label).add("user", entry.user).add("pid", entry.holder.pid);
    json.add("priority", entry.priority).add("since", format_utc(entry.since));
    add_amounts(json, "resources", entry.block.resources).key("cores").array();
    for (const auto& share : entry.block.cores) json.value(share.core);
    json.end().key("devices").raw(to_json(entry.block.devices));
    if (waiting && start != report.starts.end()) {
      json.key("expected_start");
      start->at ? json.value(format_utc(*start->at)) : json.raw("null");
      json.add("at_most", start->is_most).add("expected_by", start->because);
      ++start;
    }
    json.end();
  }
  json.end();
}

}  // namespace

std::string to_text(const engine::LimitsReport& limits, const View&) {
  const bool held = !limits.enforced.empty();
  return fmt::format("limits: {}{}{}{}\n", held ? "enforced: " : "advisory",
                     held ? limits.enforced : "",
                     limits.because.empty() ? "" : (held ? ", " : ": ") + limits.because,
                     limits.probed ? " (tried)" : "; berth machine --probe tries it");
}

std::string holders_text(const engine::MachineReport& report, std::string_view nobody,
                         const View& view) {
  Table holders(
      {"who", {"what", Column::kCut}, {"on", 3}, {"since", 1}, {"pid", 2}, {"", Column::kCut}});
  std::string reasons;
  std::size_t waiting = 0;
  for (const auto& entry : report.entries) {
    std::string state = entry.waiting ? "waits" : "";
    if (entry.waiting && waiting < report.starts.size()) {
      const auto& start = report.starts[waiting++];
      const std::string text = run::to_text(start, report.now);
      state += ", " + text;
      reasons += fmt::format("{} {}: {}\n", entry.label, text, start.because);
    }
    std::vector<std::string> devices;
    for (const auto& share : entry.block.devices) devices.push_back(share.uuid);
    holders.add({entry.label, to_string(entry.block.resources), join(devices, ","),
                 format_duration(report.now - entry.since), fmt::format("{}", entry.holder.pid),
                 state});
  }
  return holders.empty() ? std::string(nobody) : to_text(holders, view) + reasons;
}

std::string to_text(const engine::MachineReport& report, const View& view) {
  const machine::Capacity& capacity = report.capacity;
  Table table({"resource", "total", "free", "used", {"from", Column::kCut}});
  capacity.total.each([&](std::string_view name, std::int64_t total) {
    std::string from;
    if (name == "cpu")
      from = fmt::format("{} (cores {})", capacity.cpu_from, ranges_text(capacity.cores));
    if (name == "mem") from = capacity.mem_from;
    if (name == "disk")
      from = fmt::format("volume of {}, {} kept free", capacity.disk_path,
                         format_bytes(capacity.disk_floor));
    if (name.starts_with("gpu")) from = report.devices.topology.name;
    table.add({std::string(name), format_amount(name, total),
               format_amount(name, report.free.get(name)),
               format_amount(name, report.held.get(name)), from.empty() ? "machine file" : from});
  });
  std::string text = to_text(table, view);
  if (report.overdrawn) text += "more is allocated than the machine has now: a limit shrank\n";
  if (capacity.inodes_short) text += "the volume has almost no free inodes: disk is treated as 0\n";
  text += to_text(report.limits, view);
  for (const auto& note : capacity.notes) text += fmt::format("note: {}\n", note);
  text += devices_text(report, view);
  const std::string holders = holders_text(report, "", view);
  return holders.empty() ? text : text + "\n" + holders;
}

std::string usage_text(const engine::MachineReport& report, const View& view) {
  Table amounts({"resource", {"", 1}, "used", "of"});
  report.capacity.total.each([&](std::string_view name, std::int64_t total) {
    const std::int64_t held = total - report.free.get(name);
    amounts.add({std::string(name), utilization_bar(held, total), format_amount(name, held),
                 format_amount(name, total)});
  });
  return to_text(amounts, view) + "\n" + holders_text(report, "nothing is allocated\n", view);
}

std::string to_json(const engine::LimitsReport& limits) {
  JsonWriter json;
  json.object().add("enforced", !limits.enforced.empty()).add("because", limits.because);
  return json.add("probed", limits.probed).end().take();
}

std::string to_json(const std::vector<machine::DeviceShare>& shares) {
  JsonWriter json;
  json.array();
  for (const auto& share : shares)
    json.object()
        .add("uuid", share.uuid)
        .add("index", share.index)
        .add("gpu_mem", share.memory)
        .add("gpu_slots", share.slots)
        .add("whole", share.whole)
        .end();
  return json.end().take();
}

std::string to_json(const engine::MachineReport& report) {
  const machine::Capacity& capacity = report.capacity;
  JsonWriter json;
  add_amounts(json.object().add("version", 1), "total", capacity.total);
  add_all_amounts(json, "free", report.free, capacity.total);
  add_all_amounts(json, "held", report.held, capacity.total);
  json.add("overdrawn", report.overdrawn).key("cores").list(capacity.cores);
  json.add("cores_online", capacity.cores_online).key("numa").array();
  for (const auto& node : capacity.nodes)
    json.object().add("node", node.node).key("cores").list(node.cores).end();
  json.end().add("mem_physical", capacity.mem_physical).add("cpu_from", capacity.cpu_from);
  json.add("mem_from", capacity.mem_from).add("disk_path", capacity.disk_path);
  json.add("disk_floor", capacity.disk_floor).add("inodes_short", capacity.inodes_short);
  json.add("enforced", report.limits.enforced).key("limits").raw(to_json(report.limits));
  add_devices(json, report);
  add_entries(json, report, false);
  add_entries(json, report, true);
  return json.key("notes").list(capacity.notes).end().take() + "\n";
}

}  // namespace berth::render
