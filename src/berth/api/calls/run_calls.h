// The routes of runs and tasks: the list, one run, its charts, output and timeline, comparisons,
// explanations, reports, the cache, and what starts, stops, resumes and retries a run or sends its
// notifications. A runner that they start outlives the server; the command of a notification does
// not.
//
// Threads: any number; each request opens the store for itself. Failure: a Reply with the status of
// the error's kind.
#pragma once

#include <vector>

#include "berth/api/calls/work.h"

namespace berth::api {

std::vector<Route> run_routes(const Home& home);

}  // namespace berth::api
