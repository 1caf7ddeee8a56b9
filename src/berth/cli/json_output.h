// The documents that --json prints. Their shapes are stable; each is one line with "version": 1 and
// ends with a newline. What commands gather for people and programs alike stands here as structs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/cli/explain_run.h"
#include "berth/cli/failures.h"
#include "berth/exec/labels.h"
#include "berth/experiment/program.h"
#include "berth/machine/capacity.h"
#include "berth/machine/device_health.h"
#include "berth/machine/ledger.h"
#include "berth/run/expected_starts.h"
#include "berth/run/flow_plan.h"
#include "berth/store/store.h"
#include "berth/topology/topology.h"

namespace berth::cli {

struct ShownRun {
  store::RunRecord record;
  std::string state;  ///< From state_now().
  std::vector<store::Usage> used = {};
  std::vector<Failure> failures = {};       ///< The first of its tasks that failed.
  std::optional<exec::Labels> labels = {};  ///< nullopt: those of the record.
};
/// What to_json() has written of resources; none of what is not that.
Resources resources_of_json(std::string_view text);
/// How much of each resource was held for how long, in core-minutes, byte-minutes and so on.
std::vector<std::pair<std::string, double>> resource_minutes(const std::vector<store::Usage>& used);

/// The list of runs: {"version":1,"runs":[{…}]}.
std::string runs_json(const std::vector<ShownRun>& runs);
/// A run and its tasks: {"version":1,"run":{…},"goals":[{"metric","direction"}],
/// "constraints":[texts],"space":{NAME:{"min","max","scale"} or {"choices"}},"front":[ids],
/// "tasks":[{…}],"failures":[{…}]}. The front is that of several goals, and empty with one;
/// "broken" of a task are the constraints that it breaks. The front is that of `all` where it is
/// given, else of `tasks`.
std::string show_json(const ShownRun& run, const std::vector<const store::TaskRecord*>& tasks,
                      const std::vector<const store::TaskRecord*>* all = nullptr);
std::string show_json(const ShownRun& run, const std::vector<store::TaskRecord>& tasks);
/// One task, in the shape that it has in show_json().
std::string task_json(const store::RunRecord& run, const store::TaskRecord& task,
                      const experiment::Program& program);
/// One task as in show_json(), and "attempts_made": [{…}], "why": text, "because": [texts],
/// "command", "directory" and "last_lines".
std::string why_json(const store::RunRecord& run, const store::TaskRecord& task,
                     const std::vector<store::AttemptRecord>& attempts, const std::string& why,
                     const std::vector<std::string>& because, const run::TaskReport& report);

/// A whole run: {"version":1,"run":{…},"why":text,"waiting":[{"reason","count","tasks":[ids]}],
/// "failed":[{"cause","detail","count","tasks":[ids]}],"exit_code"}.
std::string why_run_json(const RunExplanation& run);

/// What berth check says of a file with which nothing is wrong: {"version":1,"file","kind"}.
std::string check_json(const std::string& file, const std::string& kind);

/// What berth compare finds of several runs.
struct Comparison {
  struct Run {
    ShownRun run;
    std::int64_t scored = 0;                  ///< Trials that are done and have the metric.
    const store::TaskRecord* best = nullptr;  ///< The best of these; nullptr where there are none.
    std::optional<double> score, median;      ///< The score of the best, and the median of all.
    std::optional<Duration> trial;            ///< The median time of a trial.
    std::optional<Duration> took;             ///< The time of the run.
  };
  /// Parameters that all of the runs have tried, and the best score of each run with them.
  struct Shared {
    store::Values params;
    std::vector<double> scores;  ///< In the order of the runs.
  };
  std::string metric;
  bool maximize = true;
  std::vector<Run> runs;
  std::vector<Shared> shared;
};
/// A comparison: {"version":1,"metric","direction","runs":[{…,"best":{task},…}],"shared":[{…}]}.
std::string compare_json(const Comparison& comparison);

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

/// What berth cache found and did.
struct CacheReport {
  fileset::Usage usage;
  std::size_t results = 0;
  std::optional<std::vector<fileset::Damage>> damage;  ///< nullopt: nobody asked to verify.
  std::optional<run::Collected> collected;
};
std::string cache_json(const CacheReport& report);

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
