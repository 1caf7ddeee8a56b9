// The documents of machines, placements and plans.
#include "berth/cli/json_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/units.h"
#include "berth/run/skips.h"

namespace berth::cli {
namespace {

Json amounts(const Resources& resources) {
  return parsed_or_null(to_json(resources));
}

/// With a 0 for whatever the machine has and this has none of.
Json amounts_of(const Resources& resources, const Resources& total) {
  Json object = amounts(total);
  const Json present = amounts(resources);
  for (auto& [name, amount] : object.items()) amount = present.value(name, Json(0));
  return object;
}

Json shares_json(const std::vector<machine::DeviceShare>& shares) {
  Json list = Json::array();
  for (const auto& share : shares)
    list.push_back(Json{{"uuid", share.uuid},
                        {"index", share.index},
                        {"gpu_mem", share.memory},
                        {"gpu_slots", share.slots},
                        {"whole", share.whole}});
  return list;
}

/// All that this process may use, also what is out of service.
Json device_list(const MachineReport& report) {
  const auto part = [](const std::vector<machine::DeviceShare>& shares, const std::string& uuid) {
    const auto found = std::ranges::find(shares, uuid, &machine::DeviceShare::uuid);
    return found != shares.end() ? Json{{"gpu", found->whole ? 1 : 0},
                                        {"gpu_mem", found->memory},
                                        {"gpu_slots", found->slots}}
                                 : Json(nullptr);
  };
  Json list = Json::array();
  for (const auto& share : report.devices.shares) {
    const auto& known = report.devices.topology.devices;
    const auto device = std::ranges::find(known, share.uuid, &topology::Device::uuid);
    const auto& out = report.devices.health.out_of_service;
    const auto sick =
        std::ranges::find(out, share.uuid, &std::pair<std::string, std::string>::first);
    Json foreign = Json::array();
    for (const auto& use : report.devices.health.foreign)
      if (use.uuid == share.uuid)
        foreign.push_back(Json{{"pid", use.pid}, {"program", use.program}, {"memory", use.memory}});
    list.push_back(Json{{"index", share.index},
                        {"uuid", share.uuid},
                        {"model", device->model},
                        {"pci", device->pci},
                        {"numa", share.node},
                        {"mig_parent", device->mig_parent},
                        {"in_service", sick == out.end()},
                        {"because", sick == out.end() ? "" : sick->second},
                        {"total", part(report.total_devices, share.uuid)},
                        {"free", part(report.free_devices, share.uuid)},
                        {"foreign", foreign}});
  }
  return list;
}

}  // namespace

Json limits_json(const LimitsReport& limits) {
  return Json{{"enforced", !limits.enforced.empty()},
              {"because", limits.because},
              {"probed", limits.probed}};
}

std::string machine_json(const MachineReport& report) {
  const machine::Capacity& capacity = report.capacity;
  Json nodes = Json::array();
  for (const auto& node : capacity.nodes)
    nodes.push_back(Json{{"node", node.node}, {"cores", node.cores}});
  Json holders = Json::array();
  Json waiting = Json::array();
  for (const auto& entry : report.entries) {
    Json cores = Json::array();
    for (const auto& share : entry.block.cores) cores.push_back(share.core);
    (entry.waiting ? waiting : holders)
        .push_back(Json{{"label", entry.label},
                        {"user", entry.user},
                        {"pid", entry.holder.pid},
                        {"priority", entry.priority},
                        {"since", format_utc(entry.since)},
                        {"resources", amounts(entry.block.resources)},
                        {"cores", cores},
                        {"devices", shares_json(entry.block.devices)}});
  }
  for (std::size_t i = 0; i < report.starts.size() && i < waiting.size(); ++i) {
    const auto& start = report.starts[i];
    waiting[i]["expected_start"] = start.at ? Json(format_utc(*start.at)) : Json(nullptr);
    waiting[i]["at_most"] = start.is_most;
    waiting[i]["expected_by"] = start.because;
  }
  return dump(Json{{"version", 1},
                   {"total", amounts(capacity.total)},
                   {"free", amounts_of(report.free, capacity.total)},
                   {"held", amounts_of(report.held, capacity.total)},
                   {"overdrawn", report.overdrawn},
                   {"cores", capacity.cores},
                   {"cores_online", capacity.cores_online},
                   {"numa", nodes},
                   {"mem_physical", capacity.mem_physical},
                   {"cpu_from", capacity.cpu_from},
                   {"mem_from", capacity.mem_from},
                   {"disk_path", capacity.disk_path},
                   {"disk_floor", capacity.disk_floor},
                   {"inodes_short", capacity.inodes_short},
                   {"enforced", report.limits.enforced},
                   {"limits", limits_json(report.limits)},
                   {"devices", device_list(report)},
                   {"holders", holders},
                   {"waiting", waiting},
                   {"notes", capacity.notes}}) +
         "\n";
}

std::string names_json(std::string_view what, const std::vector<std::string>& names) {
  return dump(Json{{"version", 1}, {std::string(what), names}}) + "\n";
}

std::string run_plan_json(const RunPlan& plan) {
  Json places = Json::array();
  for (const auto& block : plan.now) {
    Json cores = Json::array();
    for (const auto& share : block.cores) cores.push_back(share.core);
    places.push_back(Json{{"cores", cores}, {"devices", shares_json(block.devices)}});
  }
  return dump(Json{{"version", 1},
                   {"name", plan.name},
                   {"tasks", plan.tasks},
                   {"resources", amounts(plan.resources)},
                   {"selection", parsed_or_null(machine::to_json(plan.selection))},
                   {"limits", limits_json(plan.limits)},
                   {"side_by_side", Json{{"now", plan.now.size()}, {"empty_machine", plan.empty}}},
                   {"places", places},
                   {"waiting_before", plan.waiting_before},
                   {"why_no_more", plan.why_no_more}}) +
         "\n";
}

std::string flow_plan_json(const std::string& name, const std::vector<run::StepPlan>& steps,
                           const std::vector<std::size_t>& side_by_side,
                           const std::vector<std::string>& missing_images) {
  Json list = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Json tasks = Json::array();
    for (const auto& task : steps[i].tasks)
      tasks.push_back(
          Json{{"task", task.name}, {"command", task.command}, {"because", task.because}});
    list.push_back(Json{{"step", steps[i].name},
                        {"cached", steps[i].cached},
                        {"run", steps[i].runs},
                        {"skipped", steps[i].skipped},
                        {"later", steps[i].unfolded ? Json(steps[i].later) : Json(nullptr)},
                        {"resources", amounts(steps[i].resources)},
                        {"selection", parsed_or_null(machine::to_json(steps[i].selection))},
                        {"side_by_side", side_by_side[i]},
                        {"tasks", tasks}});
    if (!steps[i].asks.empty()) list.back()["asks"] = steps[i].asks;
    if (!steps[i].refused.empty()) list.back()["refused"] = steps[i].refused;
    for (const auto& [url, size, there] : steps[i].urls)
      list.back()["urls"].push_back(
          Json{{"url", url}, {"size", size < 0 ? Json(nullptr) : Json(size)}, {"fetched", there}});
  }
  Json plan{{"version", 1}, {"name", name}, {"steps", list}};
  if (!missing_images.empty()) plan["missing_images"] = missing_images;
  return dump(plan) + "\n";
}

std::string placement_json(const PlacementReport& report) {
  Json remaining = Json::object();
  for (const auto& [count, score] : report.remaining)
    remaining[fmt::format("{}", count)] = score ? Json(*score) : Json(nullptr);
  Json object{{"version", 1},
              {"devices", report.devices},
              {"uuids", report.uuids},
              {"policy", report.policy},
              {"objective", report.objective},
              {"score", report.score},
              {"partition_score", nullptr},
              {"exact", report.exact},
              {"bound", report.bound},
              {"alternative", nullptr},
              {"remaining", remaining}};
  if (report.held) object["held"] = *report.held;
  if (report.partition_score) object["partition_score"] = *report.partition_score;
  if (report.alternative)
    object["alternative"] =
        Json{{"devices", report.alternative->devices}, {"score", report.alternative->score}};
  return dump(object) + "\n";
}

std::string topology_json(const topology::Topology& topology) {
  Json islands = Json::array();
  for (const auto& island : topology::islands(topology)) {
    Json members = Json::array();
    for (const auto at : island) members.push_back(topology.devices[at].index);
    islands.push_back(members);
  }
  return dump(Json{{"version", 1},
                   {"topology", parsed_or_null(topology::write_json(topology))},
                   {"islands", islands}}) +
         "\n";
}

std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps) {
  Json list = Json::array();
  for (const auto& step : steps) {
    Json unserved = Json::object();
    for (const auto& [priority, count] : step.unserved)
      unserved[fmt::format("{}", priority)] = count;
    list.push_back({{"at", step.at},
                    {"cost", step.cost},
                    {"value", step.value},
                    {"gap", step.gap},
                    {"unserved_by_priority", unserved}});
  }
  return dump({{"version", 1}, {"path", path}, {"sweep", list}}) + "\n";
}

std::string check_json(const std::string& file, const std::string& kind) {
  return dump(Json{{"version", 1}, {"file", file}, {"kind", kind}}) + "\n";
}

}  // namespace berth::cli
