// The routes of runs and tasks: the list, one run, its charts, output and timeline, comparisons,
// explanations, and what starts, stops, resumes and retries a run. The only process that they start
// is the runner of a run, which outlives the server.
//
// Threads: any number; each request opens the store for itself. Failure: a Reply with the status of
// the error's kind.
#pragma once

#include <vector>

#include "berth/api/calls/work.h"

namespace berth::api {

std::vector<Route> run_routes(const Home& home);

}  // namespace berth::api
