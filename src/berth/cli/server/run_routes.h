// The routes of runs and tasks that the server answers itself: the list, one run, comparisons,
// explanations, and what starts, stops, resumes and retries a run. The only process that they start
// is the runner of a run, which outlives the server.
//
// Threads: any number; each request opens the store for itself. Failure: a Reply with the status of
// the error's kind.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "berth/api/routes.h"

namespace berth::cli {

/// `berth`: the path of the program that drives runs.
std::vector<api::Route> run_routes(const std::string& berth);

/// Checks that these may be names of runs and tasks, and none is an option. Errors: usage.
Status check_names(const api::Request& request, std::span<const std::string> names);

}  // namespace berth::cli
