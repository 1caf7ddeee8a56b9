#include "berth/library/run_state.h"

#include "berth/run/study.h"

namespace berth::library {

bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run) {
  return run.state == store::RunState::running && !run.runner_host.empty() &&
         run.runner_host != env.host_name();
}

std::string state_now(os::Env& env, const store::RunRecord& run) {
  // Whether a process of another machine lives is not known here.
  if (is_driven_elsewhere(env, run)) return std::string(store::name(run.state));
  const bool open = run.state == store::RunState::running || run.state == store::RunState::waiting;
  // It has no runner: whoever asks drives it.
  if (open && run.kind == run::kStudy) return run.counts.running > 0 ? "running" : "waiting";
  // A run is submitted and then taken over by the same process, within milliseconds.
  constexpr Duration kBetween = std::chrono::seconds(5);
  const bool lost = run.runner_pid != 0
                        ? !env.alive({static_cast<pid_t>(run.runner_pid), run.runner_started_at})
                        : env.wall() - run.created > kBetween;
  if (open && lost) return "interrupted";
  return std::string(store::name(run.state));
}

}  // namespace berth::library
