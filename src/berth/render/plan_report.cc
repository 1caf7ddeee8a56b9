#include "berth/render/plan_report.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/render/fleet_cells.h"

namespace berth::render {
namespace {

Section cost(const fleet::Plan& plan) {
  const auto& proof = plan.proof;
  Section section{"Cost", {}};
  section.parts.emplace_back(Text{
      fmt::format("{} cents an hour. The value of this plan is {}: the additional cost, plus a "
                  "penalty for each move to another accelerator. No plan that serves as many "
                  "requests has a value below {} (gap {:.4f} %){}.",
                  figure(plan.cost), figure(proof.value), figure(proof.bound), 100 * proof.gap,
                  proof.stopped ? "; stopped by the time limit" : "")});
  for (const auto& [priority, count] : proof.unserved)
    if (count > 0)
      section.parts.emplace_back(Text{fmt::format(
          "{1} servers of priority {0} are not served; every plan leaves at least {2} unserved.",
          priority, count, proof.unserved_bound.at(priority))});
  if (plan.watts > 0)
    section.parts.emplace_back(
        Text{fmt::format("It draws {} W by the power curves.", figure(plan.watts, 0))});
  return section;
}

Section capacity(const fleet::Plan& plan) {
  Table table({"type", "used", "capacity", "cost, cents/h", "value of one more"});
  Bars bars{.title = "Accelerators used and available", .bars = {}};
  for (const auto& total : plan.totals) {
    const std::string limit = total.limit ? fmt::format("{}", *total.limit) : "-";
    table.add({total.type, fmt::format("{}", total.used), limit, figure(total.cost),
               total.shadow_price > 0 ? figure(total.shadow_price) : "-"});
    if (total.limit && *total.limit > 0)
      bars.bars.push_back({total.type,
                           static_cast<double>(total.used) / static_cast<double>(*total.limit),
                           fmt::format("{} of {}", total.used, limit)});
  }
  return {"Capacity", {std::move(bars), std::move(table)}};
}

Section servers(const fleet::System& system, const fleet::Plan& plan) {
  Table table({"server", "class", "accelerator", "replicas", "batch", "cost, cents/h",
               "ITL / SLO, ms", "TTFT / SLO, ms", "utilization", "change"});
  for (const auto& [name, assignment] : plan.servers) {
    const auto& allocation = assignment.allocation;
    if (allocation.accelerator.empty()) continue;
    const fleet::Server& server = system.servers.at(name);
    const fleet::Target target = fleet::target_of(system, server);
    table.add({name, server.service_class.empty() ? "Free" : server.service_class,
               accelerators_of(allocation) + (assignment.is_spot ? " (spot)" : ""),
               replicas_of(allocation), batch_of(allocation), figure(allocation.cost),
               against(allocation.itl_ms, target.itl_ms),
               against(allocation.ttft_ms, target.ttft_ms),
               fmt::format("{:.0f} %", 100 * allocation.utilisation),
               change_of(server.current, allocation)});
  }
  return {"Servers", {std::move(table)}};
}

Section percentiles(const fleet::System& system, const fleet::Plan& plan) {
  Table table({"server", "accelerator", "expected / SLO, ms (closed form)"});
  for (const auto& [name, assignment] : plan.servers) {
    const auto targets = fleet::target_of(system, system.servers.at(name)).percentiles;
    if (targets == fleet::Percentiles{}) continue;
    std::vector<fleet::Allocation> parts = assignment.allocation.parts;
    if (parts.empty()) parts.push_back(assignment.allocation);
    for (const auto& part : parts)
      if (part.percentiles)
        table.rows.push_back(
            {name, fleet::with_role(part.accelerator, part.role),
             percentiles_text(*part.percentiles, fleet::targets_of(targets, part.role))});
  }
  Section section{"Percentiles", {}};
  if (!table.rows.empty()) section.parts.emplace_back(std::move(table));
  return section;
}

/// Why each is what it is: what binds it, or why it goes without.
Section reasons(const fleet::Plan& plan) {
  Table table({"server", "reason"});
  for (const auto& [name, assignment] : plan.servers)
    if (!assignment.reason.empty()) table.add({name, assignment.reason});
  Section section{"Reasons", {}};
  if (!table.rows.empty()) section.parts.emplace_back(std::move(table));
  return section;
}

}  // namespace

Document report_of_plan(const std::string& title, const fleet::System& system,
                        const fleet::Plan& plan) {
  const auto served = std::ranges::count_if(
      plan.servers, [](const auto& each) { return !each.second.allocation.accelerator.empty(); });
  Document page{.title = title,
                .subtitle = fmt::format("a plan for {} servers, {} with replicas, {} cents an hour",
                                        plan.servers.size(), served, figure(plan.cost)),
                .sections = {}};
  for (auto& section : {cost(plan), capacity(plan), servers(system, plan),
                        percentiles(system, plan), reasons(plan)})
    if (!section.parts.empty()) page.sections.push_back(section);
  return page;
}

}  // namespace berth::render
