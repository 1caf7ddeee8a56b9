#include "berth/render/fleets/fleet_cells.h"

#include "berth/base/text.h"

namespace berth::render {
namespace {

/// A field of each part of a mix, such as "8 + 4", or of the whole allocation.
template <class Field>
std::string each_of(const fleet::Allocation& allocation, Field fleet::Allocation::* field) {
  if (allocation.parts.empty()) return fmt::format("{}", allocation.*field);
  std::vector<std::string> parts;
  for (const auto& part : allocation.parts) parts.push_back(fmt::format("{}", part.*field));
  return join(parts, " + ");
}

}  // namespace

std::string figure(double value, int digits) {
  return fmt::format("{:.{}f}", value, digits);
}

std::string watts_text(double watts) {
  return watts > 0 ? figure(watts, 0) : "-";
}

std::string against(double value, double target) {
  return target > 0 ? fmt::format("{} / {}", figure(value, 1), figure(target, 1))
                    : figure(value, 1);
}

std::string short_against(double value, double target) {
  return target > 0 ? fmt::format("{:.0f}/{:.0f}", value, target) : figure(value, 0);
}

std::string change_of(const fleet::Allocation& from, const fleet::Allocation& to) {
  const auto before = fleet::in_words(from);
  if (before == fleet::in_words(to)) return "";
  return fmt::format("{}, {:+.2f}", before.empty() ? "new" : "was " + before, to.cost - from.cost);
}

std::string short_change(const fleet::Allocation& from, const fleet::Allocation& to) {
  const auto before = fleet::in_words(from);
  if (before == fleet::in_words(to)) return "";
  if (before.empty()) return "new";
  return (fleet::in_words(to).empty() ? "stops " : "was ") + before;
}

std::string accelerators_of(const fleet::Allocation& allocation) {
  if (allocation.parts.empty()) return allocation.accelerator;
  std::vector<std::string> parts;
  for (const auto& part : allocation.parts)
    parts.push_back(fleet::with_role(part.accelerator, part.role));
  return join(parts, " + ");
}

std::string replicas_of(const fleet::Allocation& allocation) {
  return each_of(allocation, &fleet::Allocation::replicas);
}

std::string batch_of(const fleet::Allocation& allocation) {
  return each_of(allocation, &fleet::Allocation::batch);
}

std::string percentiles_text(const fleet::Percentiles& found, const fleet::Percentiles& targets) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < fleet::kPercentiles.size(); ++i) {
    const auto add = [&](std::string_view figure_name, double is, double target) {
      if (target > 0)
        parts.push_back(
            fmt::format("{} {} {}", fleet::kPercentileNames[i], figure_name, against(is, target)));
    };
    add("TTFT", found.ttft_ms[i], targets.ttft_ms[i]);
    add("ITL", found.itl_ms[i], targets.itl_ms[i]);
  }
  return join(parts, ", ");
}

std::string accelerators_text(const fleet::Assignment& planned) {
  const auto& allocation = planned.allocation;
  return (allocation.accelerator.empty() ? "-" : accelerators_of(allocation)) +
         (planned.is_spot ? " (spot)" : "");
}

std::vector<std::string> assignment_cells(const fleet::System& system, const std::string& name,
                                          const fleet::Assignment& planned) {
  const fleet::Server& server = system.servers.at(name);
  const fleet::Target target = fleet::target_of(system, server);
  const auto& allocation = planned.allocation;
  const bool is_given = !allocation.accelerator.empty();
  return {name,
          server.service_class.empty() ? "Free" : server.service_class,
          accelerators_text(planned),
          replicas_of(allocation),
          is_given ? batch_of(allocation) : "-",
          figure(allocation.cost),
          is_given ? against(allocation.itl_ms, target.itl_ms) : "-",
          is_given ? against(allocation.ttft_ms, target.ttft_ms) : "-",
          is_given ? fmt::format("{:.0f} %", 100 * allocation.utilisation) : "-",
          change_of(server.current, allocation)};
}

Table percentiles_table(const fleet::System& system, const fleet::Plan& plan,
                        const std::string& heading) {
  Table table({"server", "accelerator", heading});
  for (const auto& [name, a] : plan.servers) {
    const fleet::Percentiles targets =
        fleet::target_of(system, system.servers.at(name)).percentiles;
    if (targets == fleet::Percentiles{}) continue;
    std::vector<fleet::Allocation> parts = a.allocation.parts;
    if (parts.empty()) parts.push_back(a.allocation);
    for (const auto& part : parts)
      if (part.percentiles)
        table.add({name, fleet::with_role(part.accelerator, part.role),
                   percentiles_text(*part.percentiles, fleet::targets_of(targets, part.role))});
  }
  return table;
}

std::string histograms_text(const std::vector<std::string>& servers) {
  constexpr std::size_t kMostNamesBytes = 200;
  return servers.empty() ? ""
                         : fmt::format("lengths by histogram: {}\n",
                                       clip(join(servers, ", "), kMostNamesBytes));
}

bool has_histogram(const fleet::Load& load, fleet::QueueModel model) {
  return model == fleet::QueueModel::calibrated && (load.in_histogram || load.out_histogram);
}

void write_attainment(JsonWriter& json, const fleet::Attainment& attained) {
  json.add("requests", attained.requests).add("lost", attained.lost);
  json.add("ttftAverage", attained.mean_ttft_ms).add("itlAverage", attained.mean_itl_ms);
  for (const auto& [name, figures] : {std::pair("ttftPercentiles", &attained.percentiles.ttft_ms),
                                      {"itlPercentiles", &attained.percentiles.itl_ms}}) {
    json.key(name).object();
    for (std::size_t i = 0; i < fleet::kPercentiles.size(); ++i)
      json.add(fleet::kPercentileNames[i], (*figures)[i]);
    json.end();
  }
  if (attained.within_ms > 0)
    json.add("withinMs", attained.within_ms)
        .add("within", attained.within)
        .add("worstWithin", attained.worst_within)
        .add("worstAt", attained.worst_at_s)
        .add("worstRate", attained.worst_per_min);
}

}  // namespace berth::render
