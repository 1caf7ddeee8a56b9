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
#include "berth/base/json_writer.h"

namespace berth::api {

std::vector<Route> run_routes(const Home& home);
/// Adds the JSON Schemas of their bodies to an object.
void add_run_request_schemas(JsonWriter& json);

}  // namespace berth::api
