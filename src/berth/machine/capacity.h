// The capacity that this process may use of the machine: not what the host has, but what affinity,
// cpusets, cgroup quotas and limits (v1 and v2, every ancestor) and the volume leave.
//
// discover() reads through the Env on every call and keeps nothing. A file that is absent limits
// nothing; one that is malformed or unreadable limits nothing either and is mentioned in `notes`.
// Errors: io where /proc/self cannot be read, or where neither affinity nor /sys nor a cpuset names
// any cores; not_found and invalid for the machine file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/os/env.h"
#include "berth/resource/resources.h"

namespace berth::machine {

/// One NUMA node and those of our cores that are on it.
struct NumaNode {
  int node = 0;
  std::vector<int> cores;  // ascending, at least one
};

struct Capacity {
  Resources total;                // cpu, mem, disk, and names from the machine file
  std::vector<int> cores;         // ascending; total cpu may be less (a quota) or a fraction
  std::vector<NumaNode> nodes;    // by number, each core on one: those without our cores left out
  std::string cpu_from;           // the binding limit: "online cores", "affinity", "cpuset of /x",
                                  // "cgroup quota of /x", "machine file"
  std::string mem_from;           // the binding limit: "physical", "cgroup limit of /x/y",
                                  // "cgroup memory.high of /x", "machine file"
  std::string disk_path;          // the directory whose volume was asked about
  std::int64_t disk_floor = 0;    // bytes kept free
  std::int64_t mem_physical = 0;  // bytes; 0: unknown
  int cores_online = 0;           // of the machine
  std::vector<std::pair<std::string, int>> gpu_slots;  // from the machine file: as slots_of() takes
  bool inodes_short = false;       // under 1 % of the volume's inodes are left: disk is 0
  std::vector<std::string> notes;  // what could not be read, for people
};

struct CapacityOptions {
  std::string disk_directory;  // its nearest existing ancestor counts; empty: the working directory
  std::string root;            // prefix of /proc and /sys: "" live, a fixture's folder in tests
  /// YAML: soft limits (cpu, mem, disk), the disk floor (disk_floor: 10G, else 10 % of the volume),
  /// throughput slots of cards by a part of their model's name (gpu_slots: {RTX 4090: 33}), and
  /// amounts of a person's own names ("licence: 2"). Empty: none. A soft limit above the hard
  /// one is an error that names file and line; disk's hard one is the volume less the floor, so
  /// that a filling volume does not make the file wrong.
  std::string machine_file;
};

Result<Capacity> discover(os::Env& env, const CapacityOptions& options);

}  // namespace berth::machine
