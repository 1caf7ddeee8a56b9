// berth dashboard: hands over to berth-server, as berth serve does.
#include "berth/cli/dashboard.h"

#include "berth/cli/serve.h"
#include "berth/cli/shared_options.h"

namespace berth::cli {
namespace {

Result<int> become_dashboard(os::Env& env, const DashboardOptions& options) {
  return become(env, "berth-server", options.line);
}

}  // namespace

void DashboardOptions::add_to(Options& options) {
  options.whole_line(line);
  options.value("RUN", run, "on whose page it opens, such as digits-3");
  options.value("--listen", listen, "HOST:PORT (default 127.0.0.1, any port that is free)");
  options.list("--fleet", fleets, "fleet documents, or directories of them, that the page may plan")
      .one_at_a_time()
      .named("PATH");
  options.value("--profile", profile, "the fleets' loads over a day, as of berth plan")
      .named("FILE");
  options.flag("--look-only", look_only,
               "nothing can be stopped, resumed or retried from the page");
  access.add_to(options);
  options.footer(
      "It prints a link that is good once, and serves the page until Ctrl-C. From another "
      "machine:\n"
      "ssh -L 8400:127.0.0.1:8400 HOST berth dashboard --listen 127.0.0.1:8400\n"
      "Example:\n"
      "  berth dashboard digits-3\n"
      "  berth dashboard --fleet fleet.json --profile day.csv");
}

Command dashboard_command(Result<int> (*dashboard)(os::Env&, const DashboardOptions&)) {
  return command("dashboard", "a page that shows runs as they go, in a browser", dashboard);
}

Command dashboard_command() {
  return dashboard_command(become_dashboard);
}

}  // namespace berth::cli
