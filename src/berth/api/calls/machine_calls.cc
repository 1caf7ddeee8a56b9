#include "berth/api/calls/machine_calls.h"

#include "berth/api/autoscale_metrics.h"
#include "berth/api/calls/body.h"
#include "berth/api/calls/work.h"
#include "berth/base/exposition.h"
#include "berth/base/text.h"
#include "berth/base/visible.h"
#include "berth/render/machines/cluster_use.h"
#include "berth/render/machines/clusters.h"
#include "berth/render/machines/examination.h"
#include "berth/render/machines/machine.h"
#include "berth/render/machines/metrics.h"
#include "berth/render/machines/placement.h"

namespace berth::api {

struct NewCluster {
  std::string name, key;
  std::vector<std::string> hosts;
};
struct CleanChoices {
  bool dry_run = false;
  std::string older_than;  ///< An age such as "7d"; "": the default.
};

}  // namespace berth::api

namespace berth {

template <>
inline constexpr auto kRecordOf<api::NewCluster> = Record{
    "NewCluster", "A cluster of ssh hosts.", key("name", &api::NewCluster::name),
    key("hosts", &api::NewCluster::hosts, "user@host[:port], or names from the ssh configuration"),
    optional_key("key", &api::NewCluster::key, "the file of the private key")};
template <>
inline constexpr auto kRecordOf<api::CleanChoices> = Record{
    "CleanRequest", "What to remove from a cluster.",
    optional_key("dry_run", &api::CleanChoices::dry_run, "only count the files (ssh)"),
    optional_key("older_than", &api::CleanChoices::older_than,
                 "remove files that were unused for this long, such as 7d (default: 30d; ssh)")};

}  // namespace berth

namespace berth::api {
namespace {

constexpr std::string_view kMachines = "machines", kNamespace = "default";

Result<std::string> machine(Work& work) {
  BERTH_ASSIGN(auto report, engine::machine_report(*work.env));
  engine::find_starts(*work.env, report);
  return visible_json(render::to_json(report));
}

/// The name of a topology; "": that of this machine. A caller that may only read cannot name a
/// file, because an error would quote its content.
Result<std::string> topology_name(const Work& work) {
  std::string name = work.value("topology");
  if (!name.empty() && work.request->role < Role::control) BERTH_TRY(topology::known_machine(name));
  return name;
}

Result<std::string> show_topology(Work& work) {
  BERTH_ASSIGN(const std::string name, topology_name(work));
  return json_of(engine::read_topology(*work.env, name));
}

Result<std::string> place(Work& work) {
  engine::PlacementRequest request;
  request.count = work.value("count");
  if (request.count.empty()) return fail(ErrorKind::usage, "count: expected the number of GPUs");
  request.require = work.value("require");
  request.policy = work.value("policy");
  request.objective = work.value("objective");
  BERTH_ASSIGN(request.topology, topology_name(work));
  if (const auto available = work.value("available"); !available.empty())
    request.available = available;
  const std::string all = work.value("all");
  if (!all.empty() && all != "true" && all != "false")
    return fail(ErrorKind::usage, "all: expected true or false, got '{}'", clip(all));
  request.all = all == "true";
  if (request.all && request.available)
    return fail(ErrorKind::usage, "all: expected no 'available' together with it");
  return json_of(engine::place_devices(*work.env, request));
}

/// {"name": "lab", "hosts": ["alice@10.0.0.7:2222"], "key": "/home/alice/.ssh/lab"}
Result<std::string> add_cluster(Work& work) {
  NewCluster cluster;
  BERTH_TRY(read_body(work.request->body, cluster));
  const auto added = engine::add_cluster(*work.env, cluster.name, cluster.hosts, cluster.key);
  if (added && !added->warning.empty()) work.notes.push_back(added->warning);
  BERTH_ASSIGN(const std::string json, json_of(added));
  return with_notes(work, json);
}

Result<std::string> remove_cluster(Work& work) {
  return json_of(engine::remove_clusters(*work.env, {work.name()}));
}

Result<std::string> probe_cluster(Work& work) {
  return json_of(engine::probe_clusters(*work.env, {work.name()}));
}

/// {"dry_run": true, "older_than": "7d"}
Result<std::string> clean_cluster(Work& work) {
  CleanChoices choices;
  BERTH_TRY(read_body(work.request->body, choices));
  engine::CleanRequest request{.dry_run = choices.dry_run};
  if (!choices.older_than.empty()) {
    BERTH_ASSIGN(request.older_than, read_age("older_than", choices.older_than));
  }
  return json_of(engine::clean_clusters(*work.env, {work.name()}, request));
}

constexpr WorkCall kMachineCalls[] = {
    {{"GET", "/v1/machine", Role::read, kMachines, "this machine and its allocations", "Machine"},
     machine,
     false},
    {{"GET", "/v1/top", Role::read, kMachines, "the current state of this machine and the clusters",
      "Top"},
     [](Work& work) { return json_of(engine::current_use(*work.env, work.request->is_abandoned)); },
     false},
    {{"GET", "/v1/topology", Role::read, kMachines,
      "the topology of the GPUs of this machine or of a named machine", "Topology", "", "topology"},
     show_topology,
     false},
    {{"GET", "/v1/placement", Role::read, kMachines, "the GPUs that a job would get", "Placement",
      "", "count topology available require policy objective all"},
     place,
     false},
    {{"GET", "/v1/clusters", Role::read, kMachines, "the configured clusters", "Clusters"},
     [](Work& work) { return json_of(engine::list_clusters(*work.env, {})); },
     false},
    {{"POST", "/v1/clusters", Role::control, kMachines, "add a cluster of ssh hosts",
      "AddedCluster", "NewCluster", "", 201},
     add_cluster,
     false},
    {{"DELETE", "/v1/clusters/{cluster}", Role::control, kMachines,
      "remove a cluster from the clusters file", "RemovedClusters"},
     remove_cluster,
     false},
    {{"POST", "/v1/clusters/{cluster}/probe", Role::control, kMachines,
      "contact a cluster, and return its free resources", "ProbedClusters"},
     probe_cluster,
     false},
    {{"POST", "/v1/clusters/{cluster}/clean", Role::control, kMachines,
      "remove what finished runs left on a cluster", "CleanedClusters", "CleanRequest"},
     clean_cluster,
     false},
    {{"GET", "/v1/doctor", Role::read, kMachines,
      "what this installation lets Berth do, and what to do about the rest", "Examination"},
     [](Work& work) {
       return json_of(Result<engine::Examination>(engine::examine(*work.env, false)));
     },
     false},
};

}  // namespace

void add_cluster_request_schemas(JsonWriter& json) {
  add_schema<NewCluster>(json);
  add_schema<CleanChoices>(json);
}

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
