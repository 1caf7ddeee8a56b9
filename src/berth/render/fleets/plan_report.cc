#include "berth/render/fleets/plan_report.h"

#include <algorithm>

#include "berth/render/fleets/fleet_cells.h"

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
  Bars bars{.title = "Accelerators used and available"};
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
  for (const auto& [name, assignment] : plan.servers)
    if (!assignment.allocation.accelerator.empty())
      table.add(assignment_cells(system, name, assignment));
  return {"Servers", {std::move(table)}};
}

Section percentiles(const fleet::System& system, const fleet::Plan& plan) {
  auto table = percentiles_table(system, plan, "expected / SLO, ms (closed form)");
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
                                        plan.servers.size(), served, figure(plan.cost))};
  for (auto& section : {cost(plan), capacity(plan), servers(system, plan),
                        percentiles(system, plan), reasons(plan)})
    if (!section.parts.empty()) page.sections.push_back(section);
  return page;
}

}  // namespace berth::render
