// Names that begin with what a user has typed, for completion. Nothing is created by the lookup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "berth/os/env.h"

namespace berth::engine {

struct NameFound {
  std::string name;
  std::string description;  ///< Counts of a run's tasks, state of a task, kind of a cluster.
};
/// The latest runs first, at most 1000.
Result<std::vector<NameFound>> runs_named(os::Env& env, std::string_view begin);
/// The tasks of a run, such as "digits-3/17", whose names begin with "digits-3/1"; at most 1000.
Result<std::vector<NameFound>> tasks_named(os::Env& env, std::string_view begin);
Result<std::vector<NameFound>> cluster_names(os::Env& env);

}  // namespace berth::engine
