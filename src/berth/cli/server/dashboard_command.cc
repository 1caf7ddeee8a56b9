// berth dashboard: the page, and who may see it.
#include <cstdio>

#include "berth/api/server.h"
#include "berth/cli/dashboard.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/print.h"
#include "berth/cli/server/dashboard.h"
#include "berth/cli/server/listen.h"
#include "berth/run/context.h"

namespace berth::cli {

Result<int> dashboard(os::Env& env, const DashboardOptions& given) {
  BERTH_ASSIGN(auto options,
               listen_options(env, given.listen, given.token_file, given.certificate, given.key));
  for (const auto& path : given.fleets) {
    BERTH_ASSIGN(const auto documents, fleet_documents(env, path));
    BERTH_TRY(fleet::read_documents(documents));
  }
  std::string page;
  std::string database;
  {
    BERTH_ASSIGN(const run::Context context, run::open_context(env));
    database = run::database_file(context.state_directory);
    if (!given.run.empty()) {
      BERTH_ASSIGN(const auto run, context.store->find_run(given.run));
      page = "#/runs/" + run.name;
    }
  }
  BERTH_ASSIGN(const std::string self, env.real_path("/proc/self/exe"));
  api::Sessions sessions(
      [secrets = std::shared_ptr(os::posix_env())] { return secrets->random(); });
  Dashboard dashboard(sessions, self.substr(0, self.rfind('/') + 1) + "berth", database,
                      {.fleets = given.fleets, .profile = given.profile},
                      !options.certificate.empty(), given.look_only);
  options.admits = [&](std::string_view path, std::string_view cookies) {
    return path == "/open" || sessions.knows(cookies);
  };
  os::install_stop_signals();
  const auto answer = [&](const api::Request& request) { return dashboard.answer(request); };
  BERTH_TRY(api::serve(env, answer, options, [&](int port) {
    print(url_of(options, port) + "/open?" + sessions.invite() + page + "\n");
    std::fflush(stdout);
  }));
  return 0;
}

}  // namespace berth::cli
