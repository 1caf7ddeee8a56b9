// berth-server: what berth serve, dashboard and autoscale hand over to, with the same arguments.
#include "berth/cli/commands/autoscale.h"
#include "berth/cli/program.h"
#include "berth/cli/server/autoscale.h"
#include "berth/cli/server/service.h"

namespace berth::cli {
namespace {

struct NoOptions {
  void add_to(Options&) {}
};

Result<int> refuse(os::Env&, const NoOptions&) {
  return fail(ErrorKind::usage,
              "this program is started by berth serve, dashboard and autoscale; run one of those");
}

}  // namespace
}  // namespace berth::cli

int main(int count, char** values) {
  using namespace berth::cli;
  const std::vector<Command> commands{command("", "", refuse), serve_command(serve),
                                      autoscale_command(autoscale), dashboard_command(dashboard)};
  return run_program(commands, count, values);
}
