#include "berth/api/autoscale_metrics.h"

#include <cmath>
#include <vector>

#include "berth/base/exposition.h"
#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::api {
namespace {

using fleet::Decision;

struct Gauge {
  std::string_view name, help;
  double (*of)(const Decision&);
};

double current(const Decision& d) {
  return d.reporting.value_or(d.current);
}

double ratio(const Decision& d) {
  const double has = current(d);
  return has > 0 ? d.desired / has : d.desired;
}

constexpr Gauge kReplicas[] = {
    {"desired_replicas", "Replicas that the variant should have.",
     [](const Decision& d) { return static_cast<double>(d.desired); }},
    {"current_replicas", "Replicas that the variant has.", current},
    {"desired_ratio",
     "Desired replicas divided by current replicas; the desired replicas if there are no current "
     "ones.",
     ratio},
};

constexpr Gauge kOwn[] = {
    {"berth_autoscale_proposed_replicas",
     "Replicas that the variant should have, also where only advice is given.",
     [](const Decision& d) { return static_cast<double>(d.desired); }},
    {"berth_autoscale_needed_replicas", "Replicas that the load needs by the model; 0: not known.",
     [](const Decision& d) { return static_cast<double>(d.needed); }},
    {"berth_autoscale_planned_requests_per_minute", "The load that was planned for.",
     [](const Decision& d) { return d.planned_per_min; }},
    {"berth_autoscale_drift_ratio",
     "What beta and gamma have turned out to be, as a multiple of the document's.",
     [](const Decision& d) { return d.drift; }},
};

constexpr Gauge kHeld{
    "berth_autoscale_held", "1 where the data were missing or absurd and nothing was moved.",
    [](const Decision& d) { return d.action == fleet::Action::hold ? 1.0 : 0.0; }};

struct LiveGauge {
  std::string_view name, help;
  std::optional<double> fleet::Live::* of;
  double unit;
};

constexpr double kMs = 1e-3;  // in seconds, Prometheus' own unit
constexpr LiveGauge kLive[] = {
    {"berth_autoscale_measured_requests_per_minute", "Requests that arrived.",
     &fleet::Live::arrivals_per_min, 1},
    {"berth_autoscale_measured_ttft_seconds", "Mean time to the first token.",
     &fleet::Live::ttft_ms, kMs},
    {"berth_autoscale_measured_itl_seconds", "Mean time between tokens.", &fleet::Live::itl_ms,
     kMs},
};

void add(Exposition& out, std::span<const Decision> decisions, std::string_view name,
         const Gauge& gauge, std::string_view name_space) {
  out.begin(name, "gauge", gauge.help);
  for (const Decision& d : decisions)
    if (d.is_known || &gauge == &kHeld)
      out.add({{"variant_name", d.server},
               {"namespace", name_space},
               {"accelerator_type", d.accelerator}},
              gauge.of(d));
}

void add_replicas(Exposition& out, std::span<const Decision> decisions, std::string_view generation,
                  std::string_view name_space) {
  for (const Gauge& g : kReplicas)
    add(out, decisions, fmt::format("{}{}", generation, g.name), g, name_space);
}

}  // namespace

void Scalings::add(const Decision& decision) {
  if (decision.desired == decision.current || !decision.is_known) return;
  const bool is_up = decision.desired > decision.current;
  ++counts[{decision.server, decision.accelerator, is_up ? "up" : "down",
            is_up               ? "load"
            : decision.is_short ? "capacity"
                                : "needless"}];
}

std::string planned_metrics(const fleet::System& system, std::string_view name_space) {
  std::vector<Decision> decisions;
  for (const auto& [name, server] : system.servers)
    if (!server.desired.accelerator.empty())
      decisions.push_back({.server = name,
                           .accelerator = server.desired.accelerator,
                           .is_known = true,
                           .current = server.current.replicas,
                           .desired = server.desired.replicas});
  Exposition out;
  if (!decisions.empty()) add_replicas(out, decisions, "wva_", name_space);
  return out.take();
}

std::string autoscale_metrics(std::span<const Decision> decisions,
                              const std::map<std::string, fleet::Live>& live,
                              const Scalings& scalings, const Published& published) {
  Exposition out;
  std::vector<std::string> generations;
  if (published.applies) generations.push_back("wva_");
  if (published.applies && published.old_names) generations.push_back("inferno_");
  for (const auto& generation : generations) {
    add_replicas(out, decisions, generation, published.name_space);
    out.begin(generation + "replica_scaling_total", "counter", "Changes of desired replicas.");
    for (const auto& [of, count] : scalings.counts) {
      const auto& [server, accelerator, direction, reason] = of;
      out.add({{"variant_name", server},
               {"namespace", published.name_space},
               {"accelerator_type", accelerator},
               {"direction", direction},
               {"reason", reason}},
              static_cast<double>(count));
    }
  }
  for (const Gauge& g : kOwn) add(out, decisions, g.name, g, published.name_space);
  add(out, decisions, kHeld.name, kHeld, published.name_space);
  for (const LiveGauge& g : kLive) {
    out.begin(g.name, "gauge", g.help);
    for (const auto& [server, figures] : live)
      if (const auto value = figures.*g.of; value && std::isfinite(*value))
        out.add({{"variant_name", server}, {"namespace", published.name_space}}, *value * g.unit);
  }
  out.begin("berth_autoscale_last_decision_timestamp_seconds", "gauge",
            "When the last decisions were made.");
  out.add({}, published.decided_at_s);
  out.begin("berth_autoscale_interval_seconds", "gauge", "The time between two decisions.");
  out.add({}, published.interval_s);
  out.begin("berth_autoscale_failures_total", "counter", "Queries and hooks that failed.");
  for (const auto& [what, count] : published.failures)
    out.add({{"what", what}}, static_cast<double>(count));
  return out.take();
}

}  // namespace berth::api
