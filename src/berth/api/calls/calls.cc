#include "berth/api/calls/calls.h"

#include <algorithm>
#include <iterator>

#include "berth/api/calls/fleet_calls.h"
#include "berth/api/calls/machine_calls.h"
#include "berth/api/calls/run_calls.h"

namespace berth::api {

std::vector<Route> all_calls(const Home& home) {
  std::vector<Route> all = run_routes(home);
  for (auto routes : {machine_routes(), fleet_routes(home)})
    std::ranges::move(routes, std::back_inserter(all));
  return all;
}

std::string request_schemas_json() {
  JsonWriter json;
  json.object();
  add_run_request_schemas(json);
  add_cluster_request_schemas(json);
  add_fleet_request_schemas(json);
  return json.end().take();
}

}  // namespace berth::api
