// berth wait: until a run has ended; its exit code is that of the run.
#include "berth/base/units.h"
#include "berth/cli/json_output.h"
#include "berth/cli/print.h"
#include "berth/cli/run_view.h"
#include "berth/cli/shared_options.h"
#include "berth/run/find_run.h"
#include "berth/run/run_end.h"

namespace berth::cli {
namespace {

struct WaitOptions {
  bool json = false;
  std::string run, timeout;

  void add_to(Options& options) {
    options.json(json);
    add_run(options, run);
    options.value("--timeout", timeout, "Give up after this time, such as 1h").named("DURATION");
    options.example("berth wait digits-3 --timeout 1h");
  }
};

Result<int> wait(os::Env& env, const WaitOptions& options) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(100);
  std::optional<Mono> until;
  if (!options.timeout.empty()) {
    const auto timeout = parse_duration(options.timeout);
    if (!timeout) return std::unexpected(within("--timeout", timeout.error()));
    until = env.now() + *timeout;
  }
  BERTH_ASSIGN(run::Context context, run::open_context(env));
  os::install_stop_signals();
  for (;;) {
    BERTH_ASSIGN(const auto record, run::find_run(context, options.run));
    const std::string state = state_now(env, record);
    if (state == "interrupted")
      return fail(ErrorKind::stale, "{}: {}", record.name, interrupted_text(record));
    if (!is_under_way(state)) {
      if (options.json)
        print(runs_json({{record, state}}));
      else
        print_state_line(record, state);
      return run::exit_code_of(*context.store, record);
    }
    if (until && env.now() >= *until)
      return fail(ErrorKind::busy, "{} is {} still: {}", record.name, state,
                  counts_text(record.counts));
    if (env.stop_signals() > 0) return exit_code(ErrorKind::interrupted);
    const Mono soon = env.now() + kLookEvery;
    BERTH_TRY(env.wait({}, until && *until < soon ? *until : soon));
  }
}

}  // namespace

Command wait_command() {
  return command("wait", "Wait until a run ends; exit with its exit code", wait);
}

}  // namespace berth::cli
