// The stable, versioned shapes of --json. Every document is one line with "version": 1.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/experiment/program.h"
#include "berth/machine/capacity.h"
#include "berth/machine/device_health.h"
#include "berth/machine/ledger.h"
#include "berth/run/flow_plan.h"
#include "berth/store/store.h"
#include "berth/topology/topology.h"

namespace berth::cli {

struct ShownRun {
  store::RunRecord record;
  std::string state;  // as state_now() tells it
  std::vector<store::Usage> used = {};
};
/// What was held for how many minutes, of each resource: core-minutes, byte-minutes.
std::vector<std::pair<std::string, double>> resource_minutes(const std::vector<store::Usage>& used);

/// {"version":1,"runs":[{…}]}
std::string runs_json(const std::vector<ShownRun>& runs);
/// {"version":1,"run":{…},"goals":[{"metric","direction"}],"front":[ids],"tasks":[{…}]}; the front
/// of several goals only.
std::string show_json(const ShownRun& run, const std::vector<const store::TaskRecord*>& tasks);
std::string show_json(const ShownRun& run, const std::vector<store::TaskRecord>& tasks);
/// One task, as in show.
std::string task_json(const store::RunRecord& run, const store::TaskRecord& task);
/// One task with "attempts_made": [{…}], "why": text and "because": [texts].
std::string why_json(const store::RunRecord& run, const store::TaskRecord& task,
                     const std::vector<store::AttemptRecord>& attempts, const std::string& why,
                     const std::vector<std::string>& because);

struct Comparison {
  struct Run {
    ShownRun run;
    std::int64_t scored = 0;                  // trials that are done and have the metric
    const store::TaskRecord* best = nullptr;  // of these; nullptr where there are none
    std::optional<double> score, median;      // the best one's, and that of all
    std::optional<Duration> trial;            // median time of a trial
    std::optional<Duration> took;             // the run
  };
  struct Shared {  // parameters that all of the runs have tried, and the best score of each
    store::Values params;
    std::vector<double> scores;  // in the order of the runs
  };
  std::string metric;
  bool maximize = true;
  std::vector<Run> runs;
  std::vector<Shared> shared;
};
/// {"version":1,"metric","direction","runs":[{…,"best":{task},"median",…}],"shared":[{…}]}
std::string compare_json(const Comparison& comparison);

struct PlacementReport {
  struct Alternative {
    std::vector<int> devices;
    std::int64_t score = 0;
  };
  std::vector<int> devices;
  std::vector<std::string> uuids;
  std::optional<std::vector<int>> held;  // by others; none: all were looked at
  std::string policy, objective;
  std::int64_t score = 0;
  std::optional<std::int64_t> partition_score;
  bool exact = true;
  std::int64_t bound = 0;
  std::optional<Alternative> alternative;
  // Size of a set, best score left; none where fewer are left.
  std::vector<std::pair<int, std::optional<std::int64_t>>> remaining;
};
std::string placement_json(const PlacementReport& report);
/// {"version":1,"topology":{…},"islands":[[indices]]}
std::string topology_json(const topology::Topology& topology);

/// {"version":1,"removed":["digits-1"]}
std::string names_json(std::string_view what, const std::vector<std::string>& names);

/// Whether tasks are held to their limits on this machine.
struct LimitsReport {
  std::string enforced;  // "memory, pids, cpu by cgroup v2"; "": they are advice
  std::string because;   // of advice, or where they are held
  bool probed = false;   // a process was placed in a group; else it is what reading tells
};

struct RunPlan {
  std::string name;
  std::int64_t tasks = 0;
  Resources resources;  // of each
  machine::DeviceSelection selection;
  std::size_t empty = 0;            // how many fit side by side on the empty machine
  std::vector<machine::Block> now;  // where those would be that fit now
  int waiting_before = 0;
  std::string why_no_more;
  LimitsReport limits;
};
std::string run_plan_json(const RunPlan& plan);

std::string flow_plan_json(const std::string& name, const std::vector<run::StepPlan>& steps,
                           const std::vector<std::size_t>& side_by_side);

struct CacheReport {
  fileset::Usage usage;
  std::size_t results = 0;
  std::optional<std::vector<fileset::Damage>> damage;  // when it was verified
  std::optional<run::Collected> collected;
};
std::string cache_json(const CacheReport& report);

struct MachineReport {
  std::string disk_directory;  // whose volume was asked for; "": the state directory
  machine::Capacity capacity;
  Resources held, free;
  bool overdrawn = false;
  std::vector<machine::LedgerEntry> entries;
  LimitsReport limits;
  machine::Devices devices;
  std::vector<machine::DeviceShare> total_devices, free_devices;  // those in service
};
std::string machine_json(const MachineReport& report);

struct SweepStep {
  double at = 0;
  double cost = 0, value = 0, gap = 0;
  std::map<int, int> unserved;  // by priority
};
/// {"version":1,"path","sweep":[{"at","cost","value","gap","unserved_by_priority"}]}
std::string sweep_json(const std::string& path, const std::vector<SweepStep>& steps);

}  // namespace berth::cli
