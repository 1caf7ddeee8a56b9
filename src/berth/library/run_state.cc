#include "berth/library/run_state.h"

#include "berth/run/study.h"

namespace berth::library {

bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run) {
  return store::is_open(run.state) && !run.runner_host.empty() &&
         run.runner_host != env.host_name();
}

std::string state_now(os::Env& env, const store::RunRecord& run) {
  std::string recorded(store::name(run.state));
  if (!store::is_open(run.state)) return recorded;
  // Whether a process of another machine lives is not known here. A study has no runner.
  if (is_driven_elsewhere(env, run) || run.kind == run::kStudy) return recorded;
  // A run is submitted and then taken over by the same process, within milliseconds.
  constexpr Duration kBetween = std::chrono::seconds(5);
  const bool lost = run.runner_pid != 0
                        ? !env.alive({static_cast<pid_t>(run.runner_pid), run.runner_started_at})
                        : env.wall() - run.created > kBetween;
  return lost ? "interrupted" : recorded;
}

bool is_under_way(std::string_view state) {
  return state == store::name(store::RunState::queued) ||
         state == store::name(store::RunState::running);
}

}  // namespace berth::library
