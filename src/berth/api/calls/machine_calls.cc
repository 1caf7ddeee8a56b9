#include "berth/api/calls/machine_calls.h"

#include "berth/api/autoscale_metrics.h"
#include "berth/api/calls/work.h"
#include "berth/base/exposition.h"
#include "berth/base/visible.h"
#include "berth/render/machines/cluster_use.h"
#include "berth/render/machines/clusters.h"
#include "berth/render/machines/examination.h"
#include "berth/render/machines/machine.h"
#include "berth/render/machines/metrics.h"
#include "berth/render/machines/placement.h"

namespace berth::api {
namespace {

constexpr std::string_view kMachines = "machines", kNamespace = "default";

Result<std::string> machine(Work& work) {
  BERTH_ASSIGN(auto report, engine::machine_report(*work.env));
  engine::find_starts(*work.env, report);
  return visible_json(render::to_json(report));
}

constexpr WorkCall kMachineCalls[] = {
    {{"GET", "/v1/machine", Role::read, kMachines, "this machine and its allocations", "Machine"},
     machine,
     false},
    {{"GET", "/v1/top", Role::read, kMachines, "the current state of this machine and the clusters",
      "Top"},
     [](Work& work) { return json_of(engine::current_use(*work.env, work.request->is_abandoned)); },
     false},
    {{"GET", "/v1/topology", Role::read, kMachines, "the topology of the GPUs", "Topology"},
     [](Work& work) { return json_of(engine::read_topology(*work.env, "")); },
     false},
    {{"GET", "/v1/clusters", Role::read, kMachines, "the configured clusters", "Clusters"},
     [](Work& work) { return json_of(engine::list_clusters(*work.env, {})); },
     false},
    {{"GET", "/v1/doctor", Role::read, kMachines,
      "what this installation lets Berth do, and what to do about the rest", "Examination"},
     [](Work& work) {
       return json_of(Result<engine::Examination>(engine::examine(*work.env, false)));
     },
     false},
};

}  // namespace

std::vector<Route> machine_routes() {
  return routes_of(kMachineCalls);
}

void AnswerCounts::add(int status) {
  const std::lock_guard lock(mutex_);
  ++counts_[status];
}

std::string AnswerCounts::metrics() const {
  const std::lock_guard lock(mutex_);
  Exposition out;
  out.begin("berth_http_answers_total", "counter", "Answers of this server, by status.");
  for (const auto& [status, count] : counts_)
    out.add({{"status", fmt::format("{}", status)}}, static_cast<double>(count));
  return out.take();
}

Route metrics_route(const Planner& planner, const AnswerCounts& counts) {
  return route_of({"GET", "/metrics", Role::read, "metrics",
                   "metrics of runs, this machine and plans, for Prometheus", kExpositionType},
                  [&planner, &counts](Work& work) -> Result<std::string> {
                    BERTH_ASSIGN(const auto metrics, engine::metrics_of(work.context));
                    return visible_text(render::to_text(metrics)) +
                           planned_metrics(planner.system(), kNamespace) + counts.metrics();
                  });
}

}  // namespace berth::api
