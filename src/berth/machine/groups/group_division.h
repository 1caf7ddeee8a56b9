// Dividing our own v2 control group: the kernel gives controllers only to the children of a group
// that has no process itself, so its processes move into a leaf first, and the groups of tasks are
// made beside that.
//
// Several Berths may share one division, if the later ones were started within the leaf of the
// first: each has a leaf of its own, mostly an empty one, and the last to leave restores
// everything. Each step is taken under a lock on the directory. Threads: one. A failure undoes what
// was changed, and the error says which step failed.
#pragma once

#include <string>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

struct GroupDivision {
  std::string directory;                 // the groups of tasks are made below it
  std::vector<std::string> controllers;  // of these groups: "memory", mostly "pids" and "cpu"
  std::string leaf;                      // ours
};

/// Divides the group, or joins an existing division. `leaf` is the name of the leaf to make.
/// Errors: denied if memory cannot be limited below it.
Result<GroupDivision> divide_group(os::Env& env, const std::string& directory,
                                   const std::string& leaf);
/// Leaves the division, and undoes it if no other Berth is there.
void undo_division(os::Env& env, const GroupDivision& division);

}  // namespace berth::machine
