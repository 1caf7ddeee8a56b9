// The control groups of this process: for each mounted hierarchy, v1 and v2, the directory of its
// own group and of every ancestor up to the mount. Sources: /proc/self/cgroup and
// /proc/self/mountinfo as cgroups(7), cgroup_namespaces(7) and proc(5) describe them.
//
// The functions keep nothing; any thread. A line that is not understood is skipped and mentioned in
// `notes`; only an unreadable /proc/self/mountinfo is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "berth/os/env.h"

namespace berth::machine {

struct CgroupDirectory {
  std::string group;      // as /proc/self/cgroup names it: "/docker/abc"
  std::string directory;  // the directory of its files: "/sys/fs/cgroup/memory"
};

struct CgroupHierarchy {
  int version = 2;                       // 1 or 2
  std::vector<std::string> controllers;  // v1: "cpu", "cpuacct", "name=systemd"; v2: none, since
                                         // cgroup.controllers of a group says what it has
  std::vector<CgroupDirectory> groups;   // ours, then each ancestor up to the mount: 1 to 64
  bool ours = true;                      // false: our own group cannot be seen from the mount, and
                                         // `groups` has the mount's root alone. Make no group there
};

struct CgroupPaths {
  std::vector<CgroupHierarchy> hierarchies;
  std::vector<std::string> notes;  // what was not understood or is not mounted, for a person

  /// The v1 hierarchy that has the controller, else the v2 one (which may lack it), else null.
  const CgroupHierarchy* find(std::string_view controller) const;
};

/// Parses the texts of the two files. Of several mounts of a hierarchy the one with the most
/// ancestors counts; a mount that is covered by another does not.
CgroupPaths parse_cgroup_paths(std::string_view cgroup, std::string_view mountinfo);

/// The same from /proc below `root` ("": the live one), which the directories then begin with too.
/// Errors: io and denied if /proc/self cannot be read. A kernel without control groups has no
/// hierarchies.
Result<CgroupPaths> find_cgroup_paths(os::Env& env, const std::string& root);

}  // namespace berth::machine
