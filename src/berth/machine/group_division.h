// Dividing a v2 control group that is ours: the kernel gives controllers only to the children of a
// group that has no process itself, so its processes move into a leaf first, and the groups of
// tasks are made beside that.
//
// Two Berths may divide the same group: each step is taken under a lock on its directory. Threads:
// one. Failure: what had been changed is changed back, and the error says which step failed.
#pragma once

#include <string>
#include <vector>

#include "berth/os/env.h"

namespace berth::machine {

struct GroupDivision {
  std::string directory;                 // below which the groups of tasks are made
  std::vector<std::string> controllers;  // that these have: "memory", mostly "pids" and "cpu"
  std::string leaf;                      // where its processes went; "" when we moved none
  std::vector<std::string> added;        // controllers that were not given to its children before
};

/// `leaf`: the name of the one to make. denied: memory cannot be limited below it.
Result<GroupDivision> divide_group(os::Env& env, const std::string& directory,
                                   const std::string& leaf);
/// The groups beside the leaf that we are in already.
Result<GroupDivision> join_division(os::Env& env, const std::string& directory);
/// Gives back what divide_group() changed, unless another Berth's groups stand there.
void undo_division(os::Env& env, const GroupDivision& division);

}  // namespace berth::machine
