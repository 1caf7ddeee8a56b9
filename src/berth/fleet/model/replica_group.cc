#include "berth/fleet/model/replica_group.h"

#include <algorithm>

#include "berth/base/text.h"

namespace berth::fleet {
namespace {

ReplicaGroup group_of(const System& system, const std::string& name, const Server& server,
                      const Allocation& allocation) {
  ReplicaGroup made{.server = name,
                    .model = server.model,
                    .accelerator = allocation.accelerator,
                    .role = allocation.role,
                    .replicas = allocation.replicas,
                    .batch = allocation.batch,
                    .start = server.start};
  if (const auto accelerator = system.accelerators.find(allocation.accelerator);
      accelerator != system.accelerators.end())
    made.accelerators = accelerator->second.multiplicity;
  const auto model = system.models.find(server.model);
  if (model == system.models.end()) return made;
  if (const auto performance = model->second.accelerators.find(allocation.accelerator);
      performance != model->second.accelerators.end())
    made.accelerators *= std::max(1, performance->second.accelerators);
  if (const auto start = model->second.starts.find(allocation.accelerator);
      start != model->second.starts.end())
    made.start = combine(server.start, start->second);
  return made;
}

}  // namespace

std::vector<ReplicaGroup> replica_groups(const System& system, const Plan& plan) {
  std::vector<ReplicaGroup> all;
  for (const auto& [name, assignment] : plan.servers) {
    const Allocation& whole = assignment.allocation;
    const bool has_parts = !whole.parts.empty();
    std::vector<Allocation> parts = whole.parts;
    if (!has_parts) parts.push_back(whole);
    std::ranges::stable_sort(parts, {}, &Allocation::accelerator);
    for (const Allocation& part : parts) {
      if (part.replicas == 0) continue;
      all.push_back(group_of(system, name, system.servers.at(name), part));
      all.back().is_part = has_parts;
    }
  }
  return all;
}

std::string resource_of(const Accelerator& accelerator) {
  if (!accelerator.resource.empty()) return accelerator.resource;
  const std::string_view type = accelerator.type;
  const bool is_instinct =
      type.size() > 2 && type.starts_with("MI") && type[2] >= '0' && type[2] <= '9';
  return is_instinct ? "amd.com/gpu" : "nvidia.com/gpu";
}

NamedTexts names_of(const ReplicaGroup& group) {
  NamedTexts names{{"server", group.server},
                   {"model", group.model},
                   {"accelerator", group.accelerator},
                   {"accelerators", fmt::format("{}", group.accelerators)},
                   {"batch", fmt::format("{}", group.batch)},
                   {"role", std::string(name(group.role))}};
  if (group.start.port > 0) names.emplace_back("port", fmt::format("{}", group.start.port));
  return names;
}

std::string fill(std::string_view text, const NamedTexts& names) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_variable = at > 0 && text[at - 1] == '$';
    const auto name = std::ranges::find_if(names, [&](const auto& each) {
      return !is_variable && text.substr(at).starts_with("{" + each.first + "}");
    });
    const bool is_name = name != names.end();
    filled += is_name ? name->second : std::string(1, text[at]);
    at += is_name ? name->first.size() + 2 : 1;
  }
  return filled;
}

Result<Start> fill(const Start& start, const NamedTexts& names,
                   const std::vector<std::string>& missing) {
  Start filled = start;
  Status status;
  const auto fill_in = [&](std::string_view field, std::string& text) {
    for (const auto& name : missing)
      if (fill(text, {{name, ""}}) != text && status)
        status = fail(ErrorKind::invalid, "start.{}: '{}': {{{}}} is not defined", field,
                      clip(text), name);
    text = fill(text, names);
  };
  for (auto& text : filled.command) fill_in("command", text);
  for (auto& text : filled.args) fill_in("args", text);
  for (auto& [name, text] : filled.environment) fill_in("env", text);
  BERTH_TRY(std::move(status));
  return filled;
}

}  // namespace berth::fleet
