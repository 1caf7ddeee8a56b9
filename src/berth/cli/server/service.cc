#include "berth/cli/server/service.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "berth/api/calls/calls.h"
#include "berth/api/calls/machine_calls.h"
#include "berth/base/text.h"
#include "berth/cli/print.h"
#include "berth/cli/server/listen.h"
#include "berth/cli/server/openapi.h"
#include "berth/cli/server/page_routes.h"
#include "berth/engine/context.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/engine/queries/queries.h"

namespace berth::cli {
namespace {

using api::Role;

/// The system gets blocks of this size back when they are freed. By default the allocator keeps
/// larger and larger ones for each thread.
constexpr int kReturnedBytes = 1 << 20;

void add(std::vector<api::Route>& to, std::vector<api::Route> routes) {
  std::ranges::move(routes, std::back_inserter(to));
}

/// Prints where the server is, and the link.
void say(const ServiceOptions& options, int port, const std::string& secret) {
  const std::string url = url_of(options.listening, port);
  if (options.is_planner_free) print(url + "\n");
  print(fmt::format("{}/open?secret={}{}\n", url, secret, options.page));
  std::fflush(stdout);
}

}  // namespace

Result<int> run_service(os::Env& env, ServiceOptions options) {
  ::mallopt(M_MMAP_THRESHOLD, kReturnedBytes);
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  api::Planner planner(std::move(options.system), engine::planning_execution(options.percentiles));
  options.fleets.planner = &planner;
  api::Sessions sessions(
      [secrets = std::shared_ptr(os::posix_env())] { return secrets->random(); });
  options.listening.sessions = &sessions;
  const bool is_free = options.is_planner_free && !options.listening.has_tokens();
  api::AnswerCounts counts;
  options.listening.on_answer = [&counts](int status) { counts.add(status); };
  const auto state = engine::state_directory(env);
  std::vector<api::Route> routes;
  add(routes, page_routes(sessions, {.database = state ? engine::database_file(*state) : "",
                                     .tls = !options.listening.certificate.empty()}));
  add(routes, api::all_calls({.program = self.substr(0, self.rfind('/') + 1) + "berth"}));
  add(routes, api::page_fleet_routes(options.fleets));
  const std::size_t first_free = routes.size();
  add(routes, planner.routes());
  routes.push_back(api::metrics_route(planner, counts));
  routes.push_back(openapi_route(routes));
  for (std::size_t i = first_free; i < routes.size(); ++i) routes[i].is_free = is_free;
  os::install_stop_signals();
  BERTH_TRY(api::serve(env, routes, options.listening, [&](int port) {
    say(options, port, sessions.invite(options.listening.most));
  }));
  return 0;
}

Result<int> serve(os::Env& env, const ServeOptions& given) {
  ServiceOptions options;
  BERTH_ASSIGN(options.listening, listen_options(env, given.listen, given.access));
  if (given.listen.empty()) {  // as clients of the reference, and its deployments, have it
    const std::string port = env.variable("INFERNO_PORT").value_or("");
    if (!port.empty()) BERTH_TRY(read_address("INFERNO_PORT", port, options.listening));
    const std::string host = env.variable("INFERNO_HOST").value_or("");
    if (!host.empty()) options.listening.host = host;
  }
  if (!given.path.empty()) {
    BERTH_ASSIGN(options.system, engine::read_fleet(env, given.path, print_notes));
    engine::note_missing(options.system, print_notes);
  }
  options.fleets.planner_name = given.path.empty() ? "the server's fleet" : given.path;
  options.percentiles = given.percentiles;
  options.is_planner_free = true;
  return run_service(env, std::move(options));
}

Result<int> dashboard(os::Env& env, const DashboardOptions& given) {
  ServiceOptions options;
  BERTH_ASSIGN(options.listening, listen_options(env, given.listen, given.access));
  options.listening.most = given.look_only ? Role::read : Role::control;
  for (const auto& path : given.fleets) {
    BERTH_ASSIGN(const auto documents, engine::fleet_documents(env, path));
    BERTH_TRY(fleet::read_documents(documents));
  }
  options.fleets = {
      .files = given.fleets, .profile = given.profile, .planner_name = "the server's fleet"};
  if (!given.run.empty()) {
    BERTH_ASSIGN(auto context, engine::open_context(env));
    BERTH_ASSIGN(const auto run, engine::details_of(context, given.run, {.tasks = false}));
    options.page = "#/runs/" + run.shown.record.name;
  }
  return run_service(env, std::move(options));
}

}  // namespace berth::cli
