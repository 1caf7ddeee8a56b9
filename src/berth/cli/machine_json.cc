// The documents of plans.
#include "berth/cli/json_output.h"

#include <nlohmann/json.hpp>

#include "berth/base/json.h"
#include "berth/render/machine.h"
#include "berth/run/skips.h"

namespace berth::cli {
namespace {

Json amounts(const Resources& resources) {
  return parsed_or_null(to_json(resources));
}

}  // namespace

std::string names_json(std::string_view what, const std::vector<std::string>& names) {
  return dump(Json{{"version", 1}, {std::string(what), names}}) + "\n";
}

std::string cache_json(const engine::CacheReport& report) {
  Json object{{"version", 1},
              {"results", report.results},
              {"objects", report.usage.objects},
              {"bytes", report.usage.bytes},
              {"set_aside", report.usage.damaged}};
  if (report.damage) {
    Json list = Json::array();
    for (const auto& each : *report.damage)
      list.push_back(Json{{"object", each.object}, {"what", each.what}});
    object["damaged"] = list;
  }
  if (report.collected)
    object["collected"] = Json{{"results", report.collected->results},
                               {"objects", report.collected->objects.objects},
                               {"bytes", report.collected->objects.bytes}};
  return dump(object) + "\n";
}

std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps) {
  Json list = Json::array();
  for (const auto& step : steps) {
    Json unserved = Json::object();
    for (const auto& [priority, count] : step.unserved)
      unserved[fmt::format("{}", priority)] = count;
    list.push_back({{"at", step.at},
                    {"cost", step.cost},
                    {"value", step.value},
                    {"gap", step.gap},
                    {"unserved_by_priority", unserved}});
  }
  return dump({{"version", 1}, {"path", path}, {"sweep", list}}) + "\n";
}

}  // namespace berth::cli
