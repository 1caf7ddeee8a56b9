// The stable, versioned shapes of --json. Every document is one line with "version": 1.
#pragma once

#include <string>
#include <vector>

#include "berth/experiment/program.h"
#include "berth/machine/capacity.h"
#include "berth/machine/ledger.h"
#include "berth/store/store.h"
#include "berth/topology/topology.h"

namespace berth::cli {

struct ShownRun {
  store::RunRecord record;
  std::string state;  // as state_now() tells it
};

/// {"version":1,"runs":[{…}]}
std::string runs_json(const std::vector<ShownRun>& runs);
/// {"version":1,"run":{…},"tasks":[{…}]}
std::string show_json(const ShownRun& run, const std::vector<store::TaskRecord>& tasks);
/// One task, as in show.
std::string task_json(const store::RunRecord& run, const store::TaskRecord& task);
/// One task with "attempts_made": [{…}] and "why": text.
std::string why_json(const store::RunRecord& run, const store::TaskRecord& task,
                     const std::vector<store::AttemptRecord>& attempts, const std::string& why);

struct PlacementReport {
  struct Alternative {
    std::vector<int> devices;
    std::int64_t score = 0;
  };
  std::vector<int> devices;
  std::vector<std::string> uuids;
  std::string policy, objective;
  std::int64_t score = 0;
  std::optional<std::int64_t> partition_score;
  bool exact = true;
  std::int64_t bound = 0;
  std::optional<Alternative> alternative;
  std::vector<std::pair<int, std::int64_t>> remaining;  // size of a set, best score left
};
std::string placement_json(const PlacementReport& report);
/// {"version":1,"topology":{…},"islands":[[indices]]}
std::string topology_json(const topology::Topology& topology);

struct MachineReport {
  machine::Capacity capacity;
  Resources held, free;
  bool overdrawn = false;
  std::vector<machine::LedgerEntry> entries;
  std::string enforced;
};
std::string machine_json(const MachineReport& report);

}  // namespace berth::cli
