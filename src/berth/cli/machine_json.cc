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

std::string run_plan_json(const RunPlan& plan) {
  Json places = Json::array();
  for (const auto& block : plan.now) {
    Json cores = Json::array();
    for (const auto& share : block.cores) cores.push_back(share.core);
    places.push_back(
        Json{{"cores", cores}, {"devices", parsed_or_null(render::to_json(block.devices))}});
  }
  return dump(Json{{"version", 1},
                   {"name", plan.name},
                   {"tasks", plan.tasks},
                   {"resources", amounts(plan.resources)},
                   {"selection", parsed_or_null(machine::to_json(plan.selection))},
                   {"limits", parsed_or_null(render::to_json(plan.limits))},
                   {"side_by_side", Json{{"now", plan.now.size()}, {"empty_machine", plan.empty}}},
                   {"places", places},
                   {"waiting_before", plan.waiting_before},
                   {"why_no_more", plan.why_no_more}}) +
         "\n";
}

std::string flow_plan_json(const std::string& name, const std::vector<run::StepPlan>& steps,
                           const std::vector<std::size_t>& side_by_side,
                           const std::vector<std::string>& missing_images) {
  Json list = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Json tasks = Json::array();
    for (const auto& task : steps[i].tasks)
      tasks.push_back(
          Json{{"task", task.name}, {"command", task.command}, {"because", task.because}});
    list.push_back(Json{{"step", steps[i].name},
                        {"cached", steps[i].cached},
                        {"run", steps[i].runs},
                        {"skipped", steps[i].skipped},
                        {"later", steps[i].unfolded ? Json(steps[i].later) : Json(nullptr)},
                        {"resources", amounts(steps[i].resources)},
                        {"selection", parsed_or_null(machine::to_json(steps[i].selection))},
                        {"side_by_side", side_by_side[i]},
                        {"tasks", tasks}});
    if (!steps[i].asks.empty()) list.back()["asks"] = steps[i].asks;
    if (!steps[i].refused.empty()) list.back()["refused"] = steps[i].refused;
    for (const auto& [url, size, there] : steps[i].urls)
      list.back()["urls"].push_back(
          Json{{"url", url}, {"size", size < 0 ? Json(nullptr) : Json(size)}, {"fetched", there}});
  }
  Json plan{{"version", 1}, {"name", name}, {"steps", list}};
  if (!missing_images.empty()) plan["missing_images"] = missing_images;
  return dump(plan) + "\n";
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

std::string check_json(const std::string& file, const std::string& kind) {
  return dump(Json{{"version", 1}, {"file", file}, {"kind", kind}}) + "\n";
}

}  // namespace berth::cli
