#include "berth/render/runs/cache.h"

#include "berth/base/record_json.h"
#include "berth/base/units.h"

namespace berth {

template <>
inline constexpr auto kRecordOf<fileset::Damage> =
    Record{"Damage", "A damaged entry of the cache.", key("object", &fileset::Damage::object),
           key("what", &fileset::Damage::what)};
template <>
inline constexpr auto kRecordOf<run::Collected> =
    Record{"CollectedEntries", "What was removed.", key("results", &run::Collected::results),
           key("objects", inner<&run::Collected::objects, &fileset::Usage::objects>),
           key("bytes", inner<&run::Collected::objects, &fileset::Usage::bytes>)};
template <auto kMember>
inline constexpr auto used = inner<&engine::CacheReport::usage, kMember>;
template <>
inline constexpr auto kRecordOf<engine::CacheReport> =
    Record{"Cache",
           "What the cache of flows contains.",
           version_key(),
           key("results", &engine::CacheReport::results),
           key("objects", used<&fileset::Usage::objects>),
           key("bytes", used<&fileset::Usage::bytes>),
           key("set_aside", used<&fileset::Usage::damaged>),
           optional_key("damaged", &engine::CacheReport::damage),
           optional_key("collected", &engine::CacheReport::collected)};

}  // namespace berth

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

void add_cache_schemas(JsonWriter& json) {
  add_schemas<fileset::Damage, run::Collected, engine::CacheReport>(json);
}

std::string to_json(const engine::CacheReport& report) {
  return json_line(report);
}

}  // namespace berth::render
