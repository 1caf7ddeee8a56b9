// The GPUs of a machine or of a named topology, and the choice of those that a job would get.
//
// Threads: one. Failure: usage, invalid, impossible (more devices than there are), busy (they are
// in use), not_found (no GPU).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/os/env.h"
#include "berth/topology/topology.h"

namespace berth::engine {

struct PlacementRequest {
  std::string topology;                  ///< As in read_topology().
  std::string count;                     ///< The number of GPUs.
  std::optional<std::string> available;  ///< "0,2-5" or UUIDs, also none; nullopt: the free GPUs.
  bool all = false;                      ///< All GPUs are available, also those in use.
  std::string require;                   ///< GPUs that the choice must include; "": none.
  std::string policy, objective;         ///< Names; "": the default.
};

struct PlacementReport {
  struct Alternative {
    std::vector<int> devices;
    std::int64_t score = 0;
  };
  std::vector<int> devices;
  std::vector<std::string> uuids;
  std::optional<std::vector<int>> held;  ///< Devices in use; nullopt: treated as available.
  std::string policy, objective;
  std::int64_t score = 0;
  std::optional<std::int64_t> partition_score;
  bool exact = true;
  std::int64_t bound = 0;
  std::optional<Alternative> alternative;
  /// The best score among the remaining devices for 2, 4 and 8 of them; nullopt if fewer remain.
  std::vector<std::pair<int, std::optional<std::int64_t>>> remaining;
};

/// The topology of that name or file; "": of this machine.
Result<topology::Topology> read_topology(os::Env& env, const std::string& name);
Result<PlacementReport> place_devices(os::Env& env, const PlacementRequest& request);

}  // namespace berth::engine
