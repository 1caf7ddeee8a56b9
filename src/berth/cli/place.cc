// berth topo, berth place: which GPUs belong together, and which a job would get.
#include <bit>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"
#include "berth/machine/devices.h"
#include "berth/placement/placement.h"
#include "berth/topology/topology.h"

namespace berth::cli {
namespace {

using placement::DeviceSet;

Result<topology::Topology> topology_of(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(auto topology, arguments.topology.empty()
                                  ? machine::discover_devices(env, {})
                                  : machine::named_topology(env, arguments.topology));
  if (topology.devices.empty())
    return fail(ErrorKind::not_found,
                "no GPU found on this machine; try --topology dgx1-v100, or a file with what "
                "nvidia-smi topo -m prints");
  BERTH_TRY(topology::check(topology));
  return topology;
}

std::vector<int> indices(const topology::Topology& topology, DeviceSet set) {
  std::vector<int> result;
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if ((set >> i & 1U) != 0) result.push_back(topology.devices[i].index);
  return result;
}

/// As a person counts them: "0,2-5".
std::string names(const topology::Topology& topology, DeviceSet set) {
  return set == 0 ? "none" : ranges_text(indices(topology, set));
}

/// The device with that UUID or index, as a set of its place; empty: there is none.
DeviceSet find_device(const topology::Topology& topology, std::string_view name) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const auto& device = topology.devices[i];
    if (device.uuid == name || fmt::format("{}", device.index) == name) return DeviceSet{1} << i;
  }
  return 0;
}

/// "0,2-5" or UUIDs, as places in the topology.
Result<DeviceSet> device_list(const topology::Topology& topology, const std::string& text) {
  DeviceSet set = 0;
  const auto add = [&](std::string_view name) -> Status {
    const DeviceSet found = find_device(topology, name);
    set |= found;
    if (found != 0) return {};
    return fail(ErrorKind::invalid, "no device '{}' in {}, which has {}, or their UUIDs",
                clip(name), topology.name, names(topology, ~DeviceSet{0}));
  };
  for (const auto part : split(text, ',')) {
    const auto item = trim(part);
    if (item.empty()) continue;
    const auto dash = item.find('-');
    const auto first = parse_integer(item.substr(0, dash));
    const auto last = dash == item.npos ? first : parse_integer(item.substr(dash + 1));
    // A UUID has dashes of its own, and may look like a range.
    if (!first || !last || find_device(topology, item) != 0) {
      BERTH_TRY(add(item));
      continue;
    }
    if (*last < *first || *last - *first >= placement::kMostDevices)
      return fail(ErrorKind::invalid, "wanted a range such as 2-5, found '{}'", clip(item));
    for (std::int64_t index = *first; index <= *last; ++index)
      BERTH_TRY(add(fmt::format("{}", index)));
  }
  return set;
}

Result<placement::Chooser> chooser_of(const topology::Topology& topology) {
  const std::size_t count = topology.devices.size();
  std::vector<std::int32_t> scores(count * count);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (a != b) scores[a * count + b] = topology::score(topology.link(a, b));
  return placement::Chooser::make(scores, static_cast<int>(count));
}

Result<placement::PolicyKind> policy_of(const std::string& name) {
  if (name.empty()) return placement::PolicyKind::packed;
  if (const auto policy = placement::policy(name)) return *policy;
  return fail(ErrorKind::usage,
              "--policy: wanted packed, best-effort, simple, static-dgx1-pascal, "
              "static-dgx1-volta or static-dgx2, found '{}'",
              clip(name));
}

Result<placement::Objective> objective_of(const std::string& name) {
  if (name.empty()) return placement::Objective::sum;
  if (const auto objective = placement::objective(name)) return *objective;
  return fail(ErrorKind::usage, "--objective: wanted sum, min or ring, found '{}'", clip(name));
}

DeviceSet well_ones(const topology::Topology& topology) {
  DeviceSet set = 0;
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if (topology.devices[i].health == topology::Health::well) set |= DeviceSet{1} << i;
  return set;
}

/// What placement would refuse too, in the numbers of the machine rather than in places.
Status check(const topology::Topology& topology, const placement::Question& question,
             bool available_told) {
  const auto& [available, required, count, objective] = question;
  const auto name = [&](DeviceSet set) { return names(topology, set); };
  if ((required & ~available) != 0)
    return fail(ErrorKind::invalid, "--require: {} not among the available: {}",
                name(required & ~available), name(available));
  if (std::popcount(required) > count)
    return fail(ErrorKind::invalid, "--require: {} are more than {}", name(required), count);
  if (count <= std::popcount(available)) return {};
  const auto have = static_cast<int>(topology.devices.size());
  if (count > have)
    return fail(ErrorKind::impossible, "{} devices wanted, {} has {}", count, topology.name, have);
  const bool some_unwell = !available_told && std::popcount(available) < have;
  return fail(ErrorKind::busy, "{} devices wanted, available: {}{}", count, name(available),
              some_unwell ? "; the others are not well, see berth topo" : "");
}

Result<placement::Question> question_of(const topology::Topology& topology,
                                        const Arguments& arguments) {
  placement::Question question;
  const auto count = parse_integer(arguments.target);
  if (!count || *count < 1 || *count > placement::kMostDevices)
    return fail(ErrorKind::usage, "wanted how many devices, 1 to {}, found '{}'",
                placement::kMostDevices, clip(arguments.target));
  question.count = static_cast<int>(*count);
  question.available = well_ones(topology);
  if (arguments.available) {
    BERTH_ASSIGN(question.available, device_list(topology, *arguments.available));
  }
  BERTH_ASSIGN(question.required, device_list(topology, arguments.require));
  BERTH_ASSIGN(question.objective, objective_of(arguments.objective));
  BERTH_TRY(check(topology, question, arguments.available.has_value()));
  return question;
}

std::string health_text(const topology::Device& device) {
  if (device.health == topology::Health::well) return "well";
  if (!device.unwell_because.empty()) return device.unwell_because;
  return device.health == topology::Health::gone ? "gone" : "unwell";
}

std::string placement_text(const PlacementReport& report) {
  std::string text = fmt::format("devices    {}\n", ranges_text(report.devices));
  for (const auto& uuid : report.uuids) text += fmt::format("           {}\n", uuid);
  text += fmt::format(
      "score      {} ({}, {}{})\n", report.score, report.policy, report.objective,
      report.bound > report.score ? fmt::format(", at most {} is possible", report.bound) : "");
  if (report.partition_score) text += fmt::format("partition  {}\n", *report.partition_score);
  if (report.alternative)
    text += fmt::format("best other {}, score {}\n", ranges_text(report.alternative->devices),
                        report.alternative->score);
  for (const auto& [count, score] : report.remaining)
    if (score) text += fmt::format("what is left offers {} devices with score {}\n", count, *score);
  return text;
}

}  // namespace

Result<int> topo_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const auto topology, topology_of(env, arguments));
  if (arguments.json) {
    print(topology_json(topology));
    return 0;
  }
  print(topology.name + "\n");
  Table table({"GPU", "model", "memory", "NUMA", "health", "UUID"});
  for (const auto& device : topology.devices)
    table.add({fmt::format("{}", device.index), device.model.empty() ? "-" : device.model,
               device.memory > 0 ? format_bytes(device.memory) : "-",
               device.numa >= 0 ? fmt::format("{}", device.numa) : "-", health_text(device),
               device.uuid});
  print(table.text() + "\n" + topology::matrix_text(topology));
  for (const auto& note : topology.notes) print(fmt::format("note: {}\n", note));
  if (!topology.source.empty()) print(fmt::format("\nsource: {}\n", topology.source));
  return 0;
}

Result<int> place_command(os::Env& env, const Arguments& arguments) {
  BERTH_ASSIGN(const auto topology, topology_of(env, arguments));
  BERTH_ASSIGN(const auto question, question_of(topology, arguments));
  BERTH_ASSIGN(const auto policy, policy_of(arguments.policy));
  BERTH_ASSIGN(auto chooser, chooser_of(topology));
  BERTH_ASSIGN(const auto answer, chooser.choose(policy, question));
  PlacementReport report;
  report.devices = indices(topology, answer.devices);
  for (std::size_t i = 0; i < topology.devices.size(); ++i)
    if ((answer.devices >> i & 1U) != 0) report.uuids.push_back(topology.devices[i].uuid);
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
  print(arguments.json ? placement_json(report) : placement_text(report));
  return 0;
}

}  // namespace berth::cli
