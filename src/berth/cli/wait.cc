// berth wait: until a run has ended; its exit code is that of the run.
#include "berth/base/units.h"
#include "berth/cli/commands.h"
#include "berth/cli/json_output.h"
#include "berth/cli/table.h"

namespace berth::cli {

Result<int> wait_command(os::Env& env, const Arguments& arguments) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(100);
  std::optional<Mono> until;
  if (!arguments.timeout.empty()) {
    const auto patience = parse_duration(arguments.timeout);
    if (!patience) return std::unexpected(within("--timeout", patience.error()));
    until = env.now() + *patience;
  }
  BERTH_ASSIGN(run::Site site, run::open_site(env));
  os::install_stop_signals();
  for (;;) {
    BERTH_ASSIGN(const auto record, site.store->find_run(arguments.target));
    const std::string state = state_now(env, record);
    if (state == "interrupted")
      return fail(ErrorKind::stale, "{}: {}", record.name, interrupted_text(record));
    if (state != "running" && state != "waiting") {
      print(arguments.json
                ? runs_json({{record, state}})
                : fmt::format("{}  {}: {}\n", record.name, state, counts_text(record.counts)));
      if (record.state == store::RunState::stopped) return exit_code(ErrorKind::interrupted);
      return record.state == store::RunState::done ? 0 : 1;
    }
    if (until && env.now() >= *until)
      return fail(ErrorKind::busy, "{} is {} still: {}", record.name, state,
                  counts_text(record.counts));
    if (env.stop_signals() > 0) return exit_code(ErrorKind::interrupted);
    const Mono soon = env.now() + kLookEvery;
    BERTH_TRY(env.wait({}, until && *until < soon ? *until : soon));
  }
}

}  // namespace berth::cli
