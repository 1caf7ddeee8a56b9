#include "berth/render/machines/placement.h"

#include <map>
#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/base/ranges.h"
#include "berth/base/record_json.h"
#include "berth/base/units.h"

namespace berth {

template <>
inline constexpr auto kRecordOf<engine::PlacementReport::Alternative> =
    Record{"OtherPlacement", "GPUs with a better score under another policy.",
           key("devices", &engine::PlacementReport::Alternative::devices),
           key("score", &engine::PlacementReport::Alternative::score)};
template <>
inline constexpr auto kRecordOf<engine::PlacementReport> =
    Record{"Placement",
           "The GPUs that a job would get, and their score.",
           version_key(),
           key("devices", &engine::PlacementReport::devices),
           key("uuids", &engine::PlacementReport::uuids),
           key("policy", &engine::PlacementReport::policy),
           key("objective", &engine::PlacementReport::objective),
           key("score", &engine::PlacementReport::score),
           key("partition_score", &engine::PlacementReport::partition_score),
           key("exact", &engine::PlacementReport::exact),
           key("bound", &engine::PlacementReport::bound),
           key("alternative", &engine::PlacementReport::alternative),
           key(
               "remaining",
               [](const auto& report) {
                 return std::map(report.remaining.begin(), report.remaining.end());
               },
               "The best score among the remaining GPUs, by their number."),
           optional_key("held", &engine::PlacementReport::held)};

}  // namespace berth

namespace berth::render {
namespace {

std::string health_text(const topology::Device& device) {
  if (device.health == topology::Health::healthy) return "healthy";
  if (!device.unhealthy_reason.empty()) return device.unhealthy_reason;
  return device.health == topology::Health::lost ? "lost" : "unhealthy";
}

const std::vector<Field<topology::Device>> kDeviceFields{
    {"GPU", [](const auto& device) { return fmt::format("{}", device.index); }},
    {"model", [](const auto& device) { return device.model.empty() ? "-" : device.model; }},
    {"memory",
     [](const auto& device) { return device.memory > 0 ? format_bytes(device.memory) : "-"; }},
    {"NUMA",
     [](const auto& device) { return device.numa >= 0 ? fmt::format("{}", device.numa) : "-"; }},
    {"health", health_text},
    {"UUID", [](const auto& device) { return device.uuid; }}};

}  // namespace

std::string to_text(const topology::Topology& topology, const View& view) {
  std::string text = topology.name + "\n" +
                     to_text(table_of(kDeviceFields, topology.devices), view) + "\n" +
                     topology::matrix_text(topology);
  for (const auto& note : topology.notes) text += fmt::format("note: {}\n", note);
  if (!topology.source.empty()) text += fmt::format("\nsource: {}\n", topology.source);
  return text;
}

std::string to_json(const topology::Topology& topology) {
  JsonWriter json;
  json.object()
      .add("version", 1)
      .key("topology")
      .raw(dump(parsed_or_null(topology::write_json(topology))));
  json.key("islands").array();
  for (const auto& island : topology::islands(topology)) {
    json.array();
    for (const auto at : island) json.value(topology.devices[at].index);
    json.end();
  }
  return json.end().end().take() + "\n";
}

std::string to_text(const engine::PlacementReport& report, const View&) {
  std::string text = fmt::format("devices    {}\n", ranges_text(report.devices));
  for (const auto& uuid : report.uuids) text += fmt::format("           {}\n", uuid);
  text += fmt::format(
      "score      {} ({}, {}{})\n", report.score, report.policy, report.objective,
      report.bound > report.score ? fmt::format(", at most {} is possible", report.bound) : "");
  if (report.held && !report.held->empty())
    text += fmt::format("in use     {} (--all includes them)\n", ranges_text(*report.held));
  if (report.partition_score) text += fmt::format("partition  {}\n", *report.partition_score);
  if (report.alternative)
    text += fmt::format("best other {}, score {}\n", ranges_text(report.alternative->devices),
                        report.alternative->score);
  for (const auto& [count, score] : report.remaining)
    if (score)
      text += fmt::format("the remaining devices offer {} devices with score {}\n", count, *score);
  return text;
}

void add_placement_schemas(JsonWriter& json) {
  add_schemas<engine::PlacementReport::Alternative, engine::PlacementReport>(json);
}

std::string to_json(const engine::PlacementReport& report) {
  return json_line(report);
}

}  // namespace berth::render
