#include "berth/render/fleets/autoscale.h"

#include <cmath>

#include "berth/base/json_writer.h"
#include "berth/base/units.h"
#include "berth/render/fleets/fleet_cells.h"

namespace berth::render {

std::string to_text(const engine::ReplayedTrace& replayed, const View&) {
  const fleet::Replay& found = replayed.replay;
  const fleet::Attainment& attained = found.attained;
  Table table({"at", "replicas", "why"});
  std::size_t changes = 0;
  for (const auto& [at_s, d] : found.decisions) {
    if (d.desired == d.current || ++changes > kMostRows) continue;
    table.add({format_duration(std::chrono::milliseconds(std::llround(at_s * 1000))),
               fmt::format("{} → {}", d.current, d.desired), d.reason});
  }
  std::string text = table.empty() ? "" : to_text(table);
  if (changes > kMostRows)
    text += fmt::format("and {} more changes; --json shows all\n", changes - kMostRows);
  text += fmt::format(
      "\n{}: {} requests in {} on {}, simulated{}\n", replayed.server, attained.requests,
      format_duration(std::chrono::seconds(std::llround(found.length_s))), found.accelerator,
      attained.lost > 0 ? fmt::format("; {} lost", attained.lost) : "");
  text += fmt::format(
      "TTFT mean {:.1f} ms, p50 {:.1f}, p95 {:.1f}, p99 {:.1f}; ITL mean {:.1f}, p95 {:.1f}\n",
      attained.mean_ttft_ms, attained.percentiles.ttft_ms[0], attained.percentiles.ttft_ms[2],
      attained.percentiles.ttft_ms[3], attained.mean_itl_ms, attained.percentiles.itl_ms[2]);
  if (attained.within_ms > 0)
    text += fmt::format(
        "{:.2f} % of the requests have their first token within {} ms; {:.2f} % in the worst five "
        "minutes, from {} on\n",
        100 * attained.within, format_number(attained.within_ms), 100 * attained.worst_within,
        format_duration(std::chrono::seconds(std::llround(attained.worst_at_s))));
  text += fmt::format(
      "cost {:.2f} cents; {} replicas for the busiest window all the time {:.2f} ({:+.1f} %)\n",
      found.cents, found.static_replicas, found.static_cents,
      found.static_cents > 0 ? 100 * (found.cents / found.static_cents - 1) : 0.0);
  text += fmt::format("{} starts, {} stops{}\n", found.starts, found.stops,
                      replayed.has_hold ? fmt::format(", {} flaps", found.flaps) : "");
  return text;
}

std::string to_json(const engine::ReplayedTrace& replayed) {
  const fleet::Replay& found = replayed.replay;
  JsonWriter json;
  json.object().add("server", replayed.server).add("accelerator", found.accelerator);
  json.add("seconds", found.length_s);
  write_attainment(json, found.attained);
  json.add("cost", found.cents).add("staticCost", found.static_cents);
  json.add("staticReplicas", found.static_replicas);
  json.add("starts", found.starts).add("stops", found.stops).add("flaps", found.flaps);
  json.key("decisions").array();
  for (const auto& [at_s, d] : found.decisions)
    json.object()
        .add("seconds", at_s)
        .add("current", d.current)
        .add("desired", d.desired)
        .add("needed", d.needed)
        .add("reason", d.reason)
        .end();
  json.end().end();
  return json.take() + "\n";
}

std::string to_text(const engine::AutoscaleHistory& history, const View&) {
  const auto& last = history.decisions.back();
  std::string text =
      fmt::format("autoscale/{}: {} × {}\n", history.server, last.desired, last.accelerator);
  for (const auto& d : history.decisions)
    text += fmt::format("  {}  {}{}: {}\n", d.at,
                        d.changes() ? fmt::format("{} → {}", d.current, d.desired)
                                    : fmt::format("{} {}", d.action, d.current),
                        d.changes() && !d.applied ? " (advice)" : "", d.reason);
  return text;
}

std::string to_json(const engine::AutoscaleHistory& history) {
  JsonWriter json;
  json.object().add("server", history.server).key("decisions").array();
  for (const auto& decision : history.decisions) json.raw(decision.line);
  return json.end().end().take() + "\n";
}

}  // namespace berth::render
