#include "berth/render/fleets/plan.h"

#include <algorithm>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/ranges.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/render/fleets/candidates.h"
#include "berth/render/fleets/fleet_cells.h"

namespace berth::render {
namespace {

/// A number of a sweep's JSON, which always has a fraction or an exponent: "8.0".
std::string fraction_text(double number) {
  if (!std::isfinite(number)) return "null";
  const auto text = fmt::format("{}", number);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

/// What every server gets, in 80 columns.
std::string servers_text(const fleet::System& system, const fleet::Plan& plan, const View& view) {
  Table table({"server",
               "accelerator",
               "replicas",
               "cost",
               {"TTFT/SLO ms", 2},
               {"ITL/SLO ms", 1},
               {"change", Column::kCut}});
  std::string notes;
  for (const auto& [name, planned] : plan.servers) {
    const fleet::Server& server = system.servers.at(name);
    const fleet::Target target = fleet::target_of(system, server);
    const auto& allocation = planned.allocation;
    const bool is_given = !allocation.accelerator.empty();
    table.add({name, accelerators_text(planned), replicas_of(allocation), figure(allocation.cost),
               is_given ? short_against(allocation.ttft_ms, target.ttft_ms) : "-",
               is_given ? short_against(allocation.itl_ms, target.itl_ms) : "-",
               short_change(server.current, allocation)});
    if (!is_given || planned.reason.contains(';'))
      notes += fmt::format("{}: {}\n", name, planned.reason);
  }
  return to_text(table, view) + notes;
}

/// The cost of the plan, and how it differs from the current allocations.
std::string cost_text(const fleet::System& system, const fleet::Plan& plan) {
  double before = 0;
  std::size_t added = 0, removed = 0, changed = 0;
  for (const auto& [name, planned] : plan.servers) {
    const fleet::Allocation& current = system.servers.at(name).current;
    before += current.cost;
    const auto now = fleet::in_words(planned.allocation), was = fleet::in_words(current);
    if (now == was) continue;
    ++(was.empty() ? added : now.empty() ? removed : changed);
  }
  std::vector<std::string> changes;
  for (const auto& [count, what] :
       {std::pair(added, "started"), {changed, "changed"}, {removed, "stopped"}})
    if (count > 0) changes.push_back(fmt::format("{} {}", count, what));
  return fmt::format("\nCost: {} cents an hour ({:+.2f}). Servers: {}.\n", figure(plan.cost),
                     plan.cost - before, changes.empty() ? "no changes" : join(changes, ", "));
}

/// All that the plan says of every server: --wide.
std::string wide_servers_text(const fleet::System& system, const fleet::Plan& plan,
                              const View& view) {
  Table table({"server",
               {"class", 6},
               "accelerator",
               "replicas",
               {"batch", 5},
               "cost",
               {"ITL / SLO ms", 1},
               {"TTFT / SLO ms", 2},
               {"use", 4},
               {"W", 7},
               {"change", 3},
               {"why", Column::kCut}});
  for (const auto& [name, assignment] : plan.servers) {
    auto row = assignment_cells(system, name, assignment);
    row.insert(row.end() - 1, watts_text(assignment.watts));
    row.push_back(assignment.reason);
    table.add(std::move(row));
  }
  return to_text(table, view);
}

/// How the limits for percentile targets were computed; "": there are no such targets.
std::string limits_text(const fleet::Candidates& all) {
  auto asked = std::ranges::count_if(all.all, &fleet::Candidate::is_rate_asked_for);
  for (const auto& pools : all.pools)
    asked += std::ranges::count_if(pools, &fleet::Candidate::is_rate_asked_for);
  if (all.stopped) return "because of the time limit, some limits are from the closed form\n";
  if (asked == 0) return "";
  return fmt::format(
      "limits of {} candidate{} by simulation, within 3 %; --percentiles closed-form is faster\n",
      asked, asked == 1 ? "" : "s");
}

/// Which servers' lengths are those of a histogram.
std::string lengths_text(const fleet::System& system) {
  std::vector<std::string> servers;
  for (const auto& [name, server] : system.servers)
    if (has_histogram(server.current.load, system.options.model)) servers.push_back(name);
  return histograms_text(servers);
}

/// How near the plan is to the best one. What the solver minimizes is the cost and the penalty for
/// changes.
std::string optimality_text(const fleet::Proof& proof) {
  const std::string stopped = proof.stopped ? "; stopped by the time limit" : "";
  constexpr double kShown = 5e-7;  // less is 0.0000 %
  if (proof.gap < kShown) return fmt::format("No plan is better by cost and changes{}.\n", stopped);
  return fmt::format("At most {:.4f} % from the best plan by cost and changes{}.\n",
                     100 * proof.gap, stopped);
}

std::string summary_text(const fleet::Plan& plan) {
  std::string text;
  Table table({"type", "used", "of", "cost", "value of one more"});
  for (const auto& total : plan.totals) {
    table.add({total.type, fmt::format("{}", total.used),
               total.limit ? fmt::format("{}", *total.limit) : "-", figure(total.cost),
               total.shadow_price > 0 ? figure(total.shadow_price) : "-"});
    for (const auto& [kind, bought] : total.purchases)
      table.add({"  " + std::string(fleet::name(kind)), fmt::format("{}", bought.used),
                 fmt::format("{}", bought.limit), figure(bought.cost),
                 bought.shadow_price > 0 ? figure(bought.shadow_price) : "-"});
  }
  if (!table.empty()) text += "\n" + to_text(table);
  const fleet::Proof& proof = plan.proof;
  text += "\n" + optimality_text(proof);
  if (plan.watts > 0 || plan.power)
    text += fmt::format(
        "Power: {}{} W by the power curves{}.\n", figure(plan.watts, 0),
        plan.power ? " of " + figure(plan.power->limit_w, 0) : "",
        plan.power && plan.power->shadow_price > 0
            ? fmt::format("; one more kW saves {}", figure(1000 * plan.power->shadow_price))
            : "");
  for (const auto& [priority, count] : proof.unserved)
    if (count > 0)
      text += fmt::format("priority {}: {} not served, at least {} in any plan\n", priority, count,
                          proof.unserved_bound.at(priority));
  return text;
}

std::string servers_json(const fleet::System& system, const fleet::Plan& plan) {
  JsonWriter json;
  json.object();
  for (const auto& [name, planned] : plan.servers) {
    const fleet::Server& server = system.servers.at(name);
    const fleet::Target target = fleet::target_of(system, server);
    json.key(name).object().add("class", server.service_class).add("model", server.model);
    json.add("utilisation", planned.allocation.utilisation).key("slo").object();
    for (const auto& [goal, value] :
         {std::pair("itl", target.itl_ms), {"ttft", target.ttft_ms}, {"tps", target.tps}})
      if (value > 0) json.add(goal, value);
    for (const auto& [goal, values] : {std::pair("itlPercentiles", &target.percentiles.itl_ms),
                                       {"ttftPercentiles", &target.percentiles.ttft_ms}}) {
      json.key(goal).object();
      for (std::size_t i = 0; i < fleet::kPercentiles.size(); ++i)
        if ((*values)[i] > 0) json.add(fleet::kPercentileNames[i], (*values)[i]);
      json.end();
    }
    json.end().key("current").object().add("accelerator", server.current.accelerator);
    json.add("numReplicas", server.current.replicas).add("cost", server.current.cost).end();
    json.add("change", change_of(server.current, planned.allocation)).end();
  }
  return json.end().take();
}

std::string manifests_text(const engine::FleetPlan& made) {
  if (made.manifests.empty()) return {};
  Table table({"server", "accelerator", "replicas", "manifest"});
  for (const auto& manifest : made.manifests)
    table.add({manifest.server, manifest.accelerator, fmt::format("{}", manifest.replicas),
               manifest.file});
  return fmt::format("\n{}\nkubectl apply -f {}\n", to_text(table),
                     shell_quote(made.request.manifests->directory));
}

std::string started_text(const std::vector<engine::StartedRun>& started) {
  if (started.empty()) return {};
  Table table({"server", "accelerator", "run", "replicas", "GPUs each", "ports"});
  for (const auto& [group, run, ports] : started)
    table.add({group.server, fleet::with_role(group.accelerator, group.role), run,
               fmt::format("{}", group.replicas), fmt::format("{}", group.accelerators),
               ports.empty() ? "-" : ranges_text(ports)});
  return "\n" + to_text(table) + "\nberth runs --label server; berth logs -f RUN; berth stop RUN\n";
}

std::string started_json(const std::vector<engine::StartedRun>& started, const std::string& plan) {
  JsonWriter json;
  json.object().add("version", 1).key("plan").raw(plan).key("started").array();
  for (const auto& [group, run, ports] : started)
    json.object()
        .add("server", group.server)
        .add("accelerator", group.accelerator)
        .add("role", fleet::name(group.role))
        .add("run", run)
        .add("replicas", group.replicas)
        .add("accelerators", group.accelerators)
        .key("ports")
        .list(ports)
        .end();
  return json.end().end().take();
}

}  // namespace

std::string to_text(const engine::FleetPlan& made, const View& view) {
  const fleet::System& system = made.system;
  const fleet::Plan& plan = made.plan;
  const auto tails = percentiles_table(system, plan, "expected / SLO ms (closed form)");
  if (made.request.lists_candidates) return candidates_text(system, made.candidates, view);
  return (made.is_wide ? wide_servers_text(system, plan, view) : servers_text(system, plan, view)) +
         cost_text(system, plan) + (tails.empty() ? "" : "\n" + to_text(tails)) +
         limits_text(made.candidates) + lengths_text(system) + summary_text(plan) +
         manifests_text(made) + started_text(made.started);
}

std::string to_json(const engine::FleetPlan& made) {
  const auto& request = made.request;
  auto json = fleet::plan_json(made.plan, request.lists_candidates ? &made.candidates : nullptr,
                               request.manifests ? &made.manifests : nullptr);
  json.insert(json.rfind('}'), ",\"servers\":" + servers_json(made.system, made.plan));
  return (request.start_on ? started_json(made.started, json) : json) + "\n";
}

std::string to_text(const fleet::Sweep& sweep, const View& view) {
  Table table({sweep.path, "cost", "value", "gap", "unserved"});
  for (const auto& step : sweep.steps) {
    std::vector<std::string> without;
    for (const auto& [priority, count] : step.unserved)
      if (count > 0) without.push_back(fmt::format("{} of priority {}", count, priority));
    table.add({format_number(step.at), figure(step.cost), figure(step.value),
               fmt::format("{:.4f} %", 100 * step.gap),
               without.empty() ? "none" : join(without, ", ")});
  }
  return to_text(table, view);
}

std::string to_json(const fleet::Sweep& sweep) {
  JsonWriter json;
  json.object().add("version", 1).add("path", sweep.path).key("sweep").array();
  for (const auto& step : sweep.steps) {
    json.object();
    for (const auto& [name, number] :
         {std::pair("at", step.at), {"cost", step.cost}, {"value", step.value}, {"gap", step.gap}})
      json.key(name).raw(fraction_text(number));
    json.key("unserved_by_priority").object();
    for (const auto& [priority, count] : step.unserved)
      json.add(fmt::format("{}", priority), count);
    json.end().end();
  }
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
