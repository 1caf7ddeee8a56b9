// What berth plan and berth serve hand the planner of the world.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "berth/base/result.h"
#include "berth/fleet/fleet.h"
#include "berth/os/env.h"

namespace berth::cli {

/// The file, or every .json of the directory. not_found, and what reading gives.
Result<std::vector<fleet::Document>> fleet_documents(os::Env& env, const std::string& path);

/// Each in a line of its own, on stderr; of very many the first.
void print_notes(const std::vector<std::string>& notes);

/// body(0) … body(count - 1) on as many threads as there are cores.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace berth::cli
