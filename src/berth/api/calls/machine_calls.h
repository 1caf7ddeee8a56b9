// The routes of this machine and the clusters (their list, changes and free resources), and GET
// /metrics: the metrics of runs and this
// machine, the decisions of the planner's clients, and the answers of the server by status.
//
// Threads: any number at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "berth/api/planner.h"
#include "berth/api/routes.h"
#include "berth/base/json_writer.h"

namespace berth::api {

std::vector<Route> machine_routes();
/// Adds the JSON Schemas of their bodies to an object.
void add_cluster_request_schemas(JsonWriter& json);

/// The number of answers that a server gave, by status.
class AnswerCounts {
 public:
  void add(int status);
  /// As Prometheus scrapes them.
  std::string metrics() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::int64_t> counts_;
};

/// The route refers to both.
Route metrics_route(const Planner& planner, const AnswerCounts& counts);

}  // namespace berth::api
