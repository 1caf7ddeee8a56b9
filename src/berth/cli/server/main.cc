// berth-server: what berth serve, dashboard and autoscale hand over to, with the same arguments.
#include <cstdio>

#include "berth/api/server.h"
#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/cli/autoscale.h"
#include "berth/cli/fleet_input.h"
#include "berth/cli/print.h"
#include "berth/cli/program.h"
#include "berth/cli/serve.h"
#include "berth/cli/server/autoscale.h"
#include "berth/cli/server/dashboard.h"
#include "berth/cli/server/listen.h"

namespace berth::cli {
namespace {

Result<int> serve(os::Env& env, const ServeOptions& given) {
  BERTH_ASSIGN(auto options,
               listen_options(env, given.listen, given.token_file, given.certificate, given.key));
  if (given.listen.empty()) {  // as clients of the reference, and its deployments, have it
    const std::string port = env.variable("INFERNO_PORT").value_or("");
    if (!port.empty()) BERTH_TRY(read_address("INFERNO_PORT", port, options));
    const std::string host = env.variable("INFERNO_HOST").value_or("");
    if (!host.empty()) options.host = host;
  }
  fleet::System system;
  if (!given.path.empty()) {
    BERTH_ASSIGN(const auto documents, fleet_documents(env, given.path));
    BERTH_ASSIGN(auto reading, fleet::read_documents(documents));
    print_notes(reading.notes);
    system = std::move(reading.system);
    print_notes(fleet::dangling_names(system));
  }
  api::Planner planner(std::move(system), planning_execution(given.percentiles));
  os::install_stop_signals();
  const auto answer = [&](const api::Request& request) { return planner.answer(request); };
  BERTH_TRY(api::serve(env, answer, options, [&](int port) {
    print(url_of(options, port) + "\n");
    std::fflush(stdout);
  }));
  return 0;
}

struct NoOptions {
  void add_to(Options&) {}
};

Result<int> refuse(os::Env&, const NoOptions&) {
  return fail(ErrorKind::usage,
              "this is what berth serve, dashboard and autoscale hand over to; start those");
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  using namespace berth::cli;
  const std::vector<Command> commands{command("", "", refuse), serve_command(serve),
                                      autoscale_command(autoscale), dashboard_command(dashboard)};
  return run_program(commands, count, values);
}
