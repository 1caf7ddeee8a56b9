// Dividing a v2 control group that is ours: the kernel gives controllers only to the children of a
// group that has no process itself, so its processes move into a leaf first, and the groups of
// tasks are made beside that.
//
// Several Berths may share one division, when those that came later were started within the leaf of
// the first: each has a leaf of its own there, mostly an empty one, and the last to go puts all
// back. Each step is taken under a lock on the directory. Threads: one. Failure: what had been
// changed is changed back, and the error says which step failed.
#pragma once

#include <string>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

struct GroupDivision {
  std::string directory;                 // below which the groups of tasks are made
  std::vector<std::string> controllers;  // that these have: "memory", mostly "pids" and "cpu"
  std::string leaf;                      // ours
};

/// Divides the group, or joins those who have. `leaf`: the name of the one to make. denied: memory
/// cannot be limited below it.
Result<GroupDivision> divide_group(os::Env& env, const std::string& directory,
                                   const std::string& leaf);
/// Leaves it, and puts back what divide_group() changed if no other Berth is there.
void undo_division(os::Env& env, const GroupDivision& division);

}  // namespace berth::machine
