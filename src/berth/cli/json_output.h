// The documents that --json prints. Their shapes are stable; each is one line with "version": 1 and
// ends with a newline. What commands gather for people and programs alike stands here as structs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/machine/capacity.h"
#include "berth/machine/device_health.h"
#include "berth/machine/ledger.h"
#include "berth/run/expected_starts.h"
#include "berth/run/flow_plan.h"
#include "berth/store/store.h"
#include "berth/topology/topology.h"

namespace berth::cli {

/// What berth check says of a file with which nothing is wrong: {"version":1,"file","kind"}.
std::string check_json(const std::string& file, const std::string& kind);

/// The answer of berth place.
struct PlacementReport {
  struct Alternative {
    std::vector<int> devices;
    std::int64_t score = 0;
  };
  std::vector<int> devices;
  std::vector<std::string> uuids;
  std::optional<std::vector<int>> held;  ///< By others; nullopt: held ones counted as available.
  std::string policy, objective;
  std::int64_t score = 0;
  std::optional<std::int64_t> partition_score;
  bool exact = true;
  std::int64_t bound = 0;
  std::optional<Alternative> alternative;
  /// For sets of 2, 4 and 8 devices the best score among those that are left; nullopt where fewer
  /// are.
  std::vector<std::pair<int, std::optional<std::int64_t>>> remaining;
};
std::string placement_json(const PlacementReport& report);
/// A topology: {"version":1,"topology":{…},"islands":[[indices]]}.
std::string topology_json(const topology::Topology& topology);

/// A list under the name `what`: {"version":1,"removed":["digits-1"]}.
std::string names_json(std::string_view what, const std::vector<std::string>& names);

/// Whether tasks are held to their limits on this machine.
struct LimitsReport {
  std::string
      enforced;  ///< Such as "memory, pids, cpu by cgroup v2"; "" means that they are advice.
  std::string because;  ///< Why they are advice, or where they are enforced.
  bool probed = false;  ///< Found by placing a process in a group; else by reading alone.
};

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
  LimitsReport limits;
};
std::string run_plan_json(const RunPlan& plan);

std::string flow_plan_json(const std::string& name, const std::vector<run::StepPlan>& steps,
                           const std::vector<std::size_t>& side_by_side,
                           const std::vector<std::string>& missing_images);

/// What a machine has, what is free, and who holds the rest.
struct MachineReport {
  std::string disk_directory;  ///< The one whose volume was asked for; "": the state directory.
  machine::Capacity capacity;
  Resources held, free;
  bool overdrawn = false;
  std::vector<machine::LedgerEntry> entries;
  LimitsReport limits;
  machine::Devices devices;
  std::vector<machine::DeviceShare> total_devices, free_devices;  ///< Of those in service.
  std::vector<run::ExpectedStart> starts;  ///< Of the entries that wait, where it was asked for.
};
std::string machine_json(const MachineReport& report);

/// A plan of berth plan --sweep, at one value of what is varied.
struct SweepStep {
  double at = 0;
  double cost = 0, value = 0, gap = 0;
  std::map<int, int> unserved;  ///< Servers without accelerators, by priority.
};
/// A sweep: {"version":1,"path","sweep":[{"at","cost","value","gap","unserved_by_priority"}]}.
std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps);

}  // namespace berth::cli
