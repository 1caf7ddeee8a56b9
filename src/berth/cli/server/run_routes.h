// The routes of runs and tasks: the list, one run, its charts, output and timeline, comparisons,
// explanations, and what starts, stops, resumes and retries a run. The only process that they start
// is the runner of a run, which outlives the server.
//
// Threads: any number; each request opens the store for itself. Failure: a Reply with the status of
// the error's kind.
#pragma once

#include <string>
#include <vector>

#include "berth/api/routes.h"

namespace berth::cli {

/// `berth`: the path of the program that drives runs.
std::vector<api::Route> run_routes(const std::string& berth);

}  // namespace berth::cli
