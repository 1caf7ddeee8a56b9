#include "berth/render/runs/cache.h"

#include "berth/base/json_writer.h"
#include "berth/base/units.h"

namespace berth::render {

std::string to_text(const engine::CacheReport& report, const View&) {
  std::string text;
  if (report.collected)
    text +=
        fmt::format("removed {} result{} and {} object{}, {}\n", report.collected->results,
                    report.collected->results == 1 ? "" : "s", report.collected->objects.objects,
                    report.collected->objects.objects == 1 ? "" : "s",
                    format_bytes(report.collected->objects.bytes));
  if (report.damage) {
    for (const auto& each : *report.damage) text += each.what + "\n";
    if (report.damage->empty()) text += "every object is whole\n";
  }
  text += fmt::format("{} results in {} objects, {}", report.results, report.usage.objects,
                      format_bytes(report.usage.bytes));
  if (report.usage.damaged > 0)
    text += fmt::format("; {} damaged, set aside", report.usage.damaged);
  return text + "\n";
}

std::string to_json(const engine::CacheReport& report) {
  JsonWriter json;
  json.object().add("version", 1).add("results", report.results);
  json.add("objects", report.usage.objects).add("bytes", report.usage.bytes);
  json.add("set_aside", report.usage.damaged);
  if (report.damage) {
    json.key("damaged").array();
    for (const auto& each : *report.damage)
      json.object().add("object", each.object).add("what", each.what).end();
    json.end();
  }
  if (report.collected) {
    const auto& [results, objects] = *report.collected;
    json.key("collected").object().add("results", results);
    json.add("objects", objects.objects).add("bytes", objects.bytes).end();
  }
  return json.end().take() + "\n";
}

}  // namespace berth::render
