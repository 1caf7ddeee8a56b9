// What the control loop publishes for Prometheus, in its text format, under the names that
// autoscalers read: HPA and KEDA look for wva_desired_replicas, older ones for
// inferno_desired_replicas. docs/reference/fleet-commands.md, "berth autoscale".
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "berth/fleet/autoscale/autoscaler.h"

namespace berth::api {

struct Published {
  bool applies = false;     // else there are proposals, and no desired replicas
  bool old_names = false;   // the inferno_… generation beside the wva_… one
  std::string name_space;   // of Kubernetes
  double decided_at_s = 0;  // since 1970
  double interval_s = 0;
  std::map<std::string, std::int64_t> failures;  // by what failed
};

/// How often, and in which direction, servers were scaled since the loop began.
struct Scalings {
  /// By server, accelerator, direction ("up", "down") and reason ("load", "needless", "capacity").
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::int64_t> counts;
  void add(const fleet::Decision& decision);
};

std::string autoscale_metrics(std::span<const fleet::Decision> decisions,
                              const std::map<std::string, fleet::Live>& live,
                              const Scalings& scalings, const Published& published);

/// What the planner's clients have decided: of each server that has an accelerator, the desired and
/// current replicas under the names that autoscalers read. "" where there is none.
std::string planned_metrics(const fleet::System& system, std::string_view name_space);

}  // namespace berth::api
