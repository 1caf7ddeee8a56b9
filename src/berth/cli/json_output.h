// The documents that --json prints. Their shapes are stable; each is one line with "version": 1 and
// ends with a newline.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/engine/cache.h"
#include "berth/engine/machine.h"
#include "berth/run/flow_plan.h"
#include "berth/store/store.h"

namespace berth::cli {

/// What berth check says of a file with which nothing is wrong: {"version":1,"file","kind"}.
std::string check_json(const std::string& file, const std::string& kind);

/// A list under the name `what`: {"version":1,"removed":["digits-1"]}.
std::string names_json(std::string_view what, const std::vector<std::string>& names);

/// Where the tasks of a run would be started on this machine.
struct RunPlan {
  std::string name;
  std::int64_t tasks = 0;
  Resources resources;  ///< Of each task.
  machine::DeviceSelection selection;
  std::size_t empty = 0;            ///< How many tasks fit side by side on the empty machine.
  std::vector<machine::Block> now;  ///< The blocks of those that fit now.
  int waiting_before = 0;
  std::string why_no_more;
  engine::LimitsReport limits;
};
std::string run_plan_json(const RunPlan& plan);

std::string flow_plan_json(const std::string& name, const std::vector<run::StepPlan>& steps,
                           const std::vector<std::size_t>& side_by_side,
                           const std::vector<std::string>& missing_images);

/// {"version":1,…}: what the cache of flows has.
std::string cache_json(const engine::CacheReport& report);

/// A plan of berth plan --sweep, at one value of what is varied.
struct SweepStep {
  double at = 0;
  double cost = 0, value = 0, gap = 0;
  std::map<int, int> unserved;  ///< Servers without accelerators, by priority.
};
/// A sweep: {"version":1,"path","sweep":[{"at","cost","value","gap","unserved_by_priority"}]}.
std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps);

}  // namespace berth::cli
