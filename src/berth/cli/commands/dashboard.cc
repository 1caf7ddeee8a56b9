// berth dashboard: hands over to berth-server, as berth serve does.
#include "berth/cli/commands/dashboard.h"

#include "berth/cli/commands/serve.h"
#include "berth/cli/commands/shared_options.h"

namespace berth::cli {

void DashboardOptions::add_to(Options& options) {
  options.whole_line(line);
  options.prepare([this](os::Env& env) { return replace_last_run(env, run); });
  options.value("RUN", run, "Open the page of this run, such as digits-3");
  options.value("--listen", listen, "Listen on this address (default: 127.0.0.1 and any free port)")
      .named("HOST:PORT");
  options.list("--fleet", fleets, "Allow planning of this fleet document or directory")
      .one_at_a_time()
      .named("PATH");
  options.value("--profile", profile, "Load of the fleets over a day, as in berth plan")
      .named("FILE");
  options.flag("--look-only", look_only, "Read-only: no stopping, resuming or retrying");
  access.add_to(options);
  options.footer(
      "Prints a link that works once and serves the page until Ctrl-C.\n"
      "From another machine: ssh -L 8400:127.0.0.1:8400 HOST berth dashboard --listen "
      "127.0.0.1:8400\n"
      "\n"
      "Examples:\n"
      "  berth dashboard digits-3\n"
      "  berth dashboard --fleet fleet.json --profile day.csv");
}

Command dashboard_command(Result<int> (*dashboard)(os::Env&, const DashboardOptions&)) {
  return command("dashboard", "Serve a live web page of all runs", dashboard);
}

Command dashboard_command() {
  return dashboard_command(become_server<DashboardOptions>);
}

}  // namespace berth::cli
