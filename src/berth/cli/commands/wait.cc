// berth wait: until a run has ended; its exit code is that of the run.
#include "berth/base/units.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/output.h"
#include "berth/engine/context.h"
#include "berth/engine/queries/queries.h"
#include "berth/render/runs/runs.h"

namespace berth::cli {
namespace {

struct WaitOptions {
  Output output;
  std::string run, timeout;

  void add_to(Options& options) {
    output.add_to(options);
    add_run(options, run);
    options.value("--timeout", timeout, "Give up after this time, such as 1h").named("DURATION");
    options.example("berth wait digits-3 --timeout 1h");
  }
};

Result<int> wait(os::Env& env, const WaitOptions& options) {
  std::optional<Mono> until;
  if (!options.timeout.empty()) {
    const auto timeout = parse_duration(options.timeout);
    if (!timeout) return std::unexpected(within("--timeout", timeout.error()));
    until = env.now() + *timeout;
  }
  BERTH_ASSIGN(auto context, engine::open_context(env));
  os::install_stop_signals();
  const auto run = engine::wait_for(context, options.run, until);
  if (!run && run.error().kind == ErrorKind::interrupted) return exit_code(ErrorKind::interrupted);
  if (!run) return std::unexpected(run.error());
  options.output.print(render::RunList{{*run}, env.wall(), ""},
                       [&] { return render::state_line(run->record, run->state, view()); });
  return engine::exit_code_of(context, run->record);
}

}  // namespace

Command wait_command() {
  return command("wait", "Wait until a run ends; exit with its exit code", wait);
}

}  // namespace berth::cli
