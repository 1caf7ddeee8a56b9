#include "berth/render/fleets/simulation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/fleet/queueing/sizing.h"
#include "berth/render/fleets/fleet_cells.h"

namespace berth::render {
namespace {

/// The mean or a percentile of a latency, and its target; 0 means no target.
struct Figure {
  std::string_view name;
  fleet::Estimate estimate;
  double target_ms = 0;
  fleet::Verdict verdict = fleet::Verdict::none;
  bool is_measured = false;
};
struct Latency {
  std::string_view name;
  std::vector<Figure> figures;
  double planned_ms = 0;  // of the mean
};

std::array<Latency, 2> latencies_of(const engine::SimulatedServer& s) {
  const auto of = [&](std::string_view name, const fleet::LatencyEstimate& found, double target_ms,
                      const std::array<double, fleet::kPercentiles.size()>& targets_ms,
                      double planned_ms) {
    Latency latency{name, {}, planned_ms};
    const auto add = [&](std::string_view figure, const fleet::Estimate& estimate, double most_ms) {
      latency.figures.push_back({figure, estimate, most_ms,
                                 fleet::verdict(s.found, estimate, found.count, most_ms),
                                 found.count > 0});
    };
    add("mean", found.mean, target_ms);
    for (std::size_t p = 0; p < found.percentiles.size(); ++p)
      add(fleet::kPercentileNames[p], found.percentiles[p], targets_ms[p]);
    return latency;
  };
  const fleet::Percentiles& targets = s.target.percentiles;
  return {
      of("TTFT", s.found.ttft_ms, s.target.ttft_ms, targets.ttft_ms, s.allocation.ttft_ms),
      of("ITL", s.found.itl_ms, s.target.itl_ms, targets.itl_ms, s.allocation.itl_ms),
  };
}

std::string latency_text(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : ms < 1000 ? 1 : 0);
}

std::string estimate_text(const fleet::Estimate& estimate) {
  if (!estimate.error) return latency_text(estimate.value);
  return fmt::format("{} ± {}", latency_text(estimate.value), latency_text(*estimate.error));
}

/// "465.7 ± 71.5 / 800.0 met"; "-" of nothing.
std::string figure_text(const Figure& figure) {
  const std::string text = figure.is_measured ? estimate_text(figure.estimate) : "-";
  if (figure.target_ms == 0) return text;
  return fmt::format("{} / {} {}", text, latency_text(figure.target_ms),
                     fleet::kVerdictNames.name(figure.verdict));
}

/// Why no target is met, or perhaps none is, whatever the latencies are; "" where enough are
/// served.
std::string lost_text(const engine::SimulatedServer& server) {
  const fleet::Estimate& lost = server.found.lost_part;
  const auto verdict = fleet::verdict(lost, fleet::kMostLoss);
  const bool has_target =
      server.target.ttft_ms > 0 || server.target.itl_ms > 0 || server.target.has_percentiles();
  if (!has_target || verdict == fleet::Verdict::met) return "";
  const bool is_sure = verdict == fleet::Verdict::missed;
  return fmt::format(
      "{}: {:.2f} % of its requests are lost, {}more than {:g} %: no target is {}met\n",
      server.name, 100 * lost.value, is_sure ? "" : "perhaps ", 100 * fleet::kMostLoss,
      is_sure ? "" : "known to be ");
}

std::string simulated_text(const std::vector<engine::SimulatedServer>& servers) {
  Table table(
      {"server", "on", "use", "lost", "", "mean / SLO ms", "p50", "p90", "p95", "p99", "planned"});
  std::string below;
  for (const auto& s : servers) {
    if (!s.not_simulated.empty()) {
      below += fmt::format("{}: not simulated: {}\n", s.name, s.not_simulated);
      continue;
    }
    std::vector<std::string> row{s.name, fleet::in_words(s.allocation),
                                 fmt::format("{:.0f} %", 100 * s.found.utilisation.value),
                                 fmt::format("{:.2f} %", 100 * s.found.lost_part.value)};
    for (const Latency& latency : latencies_of(s)) {
      row.emplace_back(latency.name);
      for (const Figure& figure : latency.figures) row.push_back(figure_text(figure));
      row.push_back(latency.planned_ms > 0 ? latency_text(latency.planned_ms) : "-");
      table.add(std::move(row));
      row = {"", "", "", ""};
    }
    below += lost_text(s);
  }
  return (table.empty() ? "" : to_text(table)) + below;
}

constexpr std::size_t kMostCharts = 8, kMostBars = 16;
constexpr double kRest = 1e-3;  // share of the requests below which they have no separate bars
constexpr int kWidestBar = 50;
constexpr std::size_t kToAPower = 10, kPowers = 12;

/// The end of the i-th range of times: ISO 3's preferred numbers, ten to a power of ten, from 1 ms.
double range_end_ms(std::size_t i) {
  constexpr std::array kPreferred{1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0};
  static_assert(kPreferred.size() == kToAPower);
  return kPreferred[i % kToAPower] * std::pow(10.0, static_cast<double>(i / kToAPower));
}

/// A bar for each range of times to the first token.
std::string ttft_chart(const engine::SimulatedServer& server) {
  std::array<std::int64_t, kPowers * kToAPower> counts{};
  for (const double ms : server.found.all_ttft_ms) {
    const auto power = ms < 1 ? 0 : static_cast<std::size_t>(std::log10(ms));
    std::size_t i = std::min(power, kPowers - 1) * kToAPower;
    while (i + 1 < counts.size() && ms >= range_end_ms(i)) ++i;
    ++counts[i];
  }
  const auto all = static_cast<double>(server.found.all_ttft_ms.size());
  const auto most = static_cast<double>(*std::ranges::max_element(counts));
  if (most == 0) return "";
  std::string text = fmt::format("\n{}: TTFT of {}\n", server.name,
                                 engine::requests_text(server.found.all_ttft_ms.size()));
  double left = all;
  for (std::size_t i = 0, bars = 0; left > 0; ++i) {
    auto count = static_cast<double>(counts[i]);
    if (count == 0 && bars == 0) continue;
    const bool is_last = ++bars == kMostBars || left <= kRest * all;
    if (is_last) count = left;
    const auto width = std::lround(kWidestBar * std::min(count / most, 1.0));
    text += fmt::format(
        "{:>12} |{:<{}} {:5.2f} %\n", is_last ? "more" : fmt::format("< {:g} ms", range_end_ms(i)),
        std::string(static_cast<std::size_t>(width), '#'), kWidestBar, 100 * count / all);
    left -= count;
  }
  return text;
}

// JsonWriter writes NAN as null.
void write_estimate(JsonWriter& json, const char* name, const fleet::Estimate& estimate) {
  json.key(name).object().add("value", estimate.value);
  json.add("error", estimate.error.value_or(NAN)).end();
}

void write_latency(JsonWriter& json, const Latency& latency) {
  json.key(lower(latency.name)).object();
  for (const Figure& figure : latency.figures) {
    json.key(figure.name).object();
    json.add("value", figure.is_measured ? figure.estimate.value : NAN);
    json.add("error", figure.estimate.error.value_or(NAN)).add("target", figure.target_ms);
    json.add("verdict", fleet::kVerdictNames.name(figure.verdict)).end();
  }
  json.add("planned", latency.planned_ms).end();
}

}  // namespace

std::string to_json(const engine::FleetSimulation& simulation) {
  JsonWriter json;
  json.object().add("version", 1).key("servers").object();
  for (const auto& s : simulation.servers) {
    if (!s.not_simulated.empty()) continue;
    json.key(s.name).object().add("allocation", fleet::in_words(s.allocation));
    json.add("numReplicas", s.allocation.replicas).add("maxBatch", s.allocation.batch);
    for (const Latency& latency : latencies_of(s)) write_latency(json, latency);
    write_estimate(json, "requestsPerMinute", s.found.throughput_per_min);
    write_estimate(json, "inService", s.found.in_service);
    write_estimate(json, "utilisation", s.found.utilisation);
    write_estimate(json, "lost", s.found.lost_part);
    json.add("requests", s.found.requests).add("histories", s.found.histories).end();
  }
  json.end().key("not_simulated").object();
  for (const auto& s : simulation.servers)
    if (!s.not_simulated.empty()) json.add(s.name, s.not_simulated);
  return json.end().end().take() + "\n";
}

std::string to_text(const engine::FleetSimulation& simulation, const View&) {
  std::string text = simulated_text(simulation.servers) + histograms_text(simulation.by_histogram);
  if (simulation.servers.size() <= kMostCharts)
    for (const auto& server : simulation.servers) text += ttft_chart(server);
  return text;
}

}  // namespace berth::render
