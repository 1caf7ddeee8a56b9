#include "berth/engine/queries/run_state.h"

#include "berth/run/state/context.h"
#include "berth/run/state/layout.h"
#include "berth/run/studies/study.h"

namespace berth::engine {

bool is_driven_elsewhere(os::Env& env, const store::RunRecord& run) {
  return store::is_open(run.state) && !run.runner_host.empty() &&
         run.runner_host != env.host_name();
}

namespace {

os::ProcessIdentity runner_of(const store::RunRecord& run) {
  return {static_cast<pid_t>(run.runner_pid), run.runner_started_at};
}

}  // namespace

bool is_driven_in_container(os::Env& env, const store::RunRecord& run, const std::string& state) {
  if (run.runner_pid == 0 || env.alive(runner_of(run))) return false;
  const auto directory = state.empty() ? run::state_directory(env) : Result<std::string>(state);
  if (!directory) return false;
  // A runner has a lock on this file, which the kernel ends with it.
  const auto lock =
      env.lock_existing(run::lock_file(run::runs_directory(*directory) + "/" + run.name));
  return !lock && lock.error().kind == ErrorKind::busy;
}

std::string state_now(os::Env& env, const store::RunRecord& run, const std::string& state) {
  std::string recorded(store::name(run.state));
  if (!store::is_open(run.state)) return recorded;
  // Whether a process of another machine lives is not known here. A study has no runner.
  if (is_driven_elsewhere(env, run) || run.kind == run::kStudy) return recorded;
  // A run is submitted and then taken over by the same process, within milliseconds.
  constexpr Duration kBetween = std::chrono::seconds(5);
  const bool lost = run.runner_pid != 0
                        ? !env.alive(runner_of(run)) && !is_driven_in_container(env, run, state)
                        : env.wall() - run.created > kBetween;
  return lost ? "interrupted" : recorded;
}

bool is_under_way(std::string_view state) {
  return state == store::name(store::RunState::queued) ||
         state == store::name(store::RunState::running);
}

}  // namespace berth::engine
